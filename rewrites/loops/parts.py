"""The parts of a loop, each tying a body value to the value outside that it stands for."""

from dataclasses import dataclass

import onnx_ir as ir

__all__ = ["ScanInput", "ScanOutput", "State"]


@dataclass(frozen=True)
class State:
    """A state variable: ``inner`` is ``initial`` in the first step and the last step's ``next`` after that.

    ``final`` is the node output that holds the last ``next``; None for a part not yet tied to a node.
    """

    initial: ir.Value
    inner: ir.Value
    next: ir.Value
    final: ir.Value | None


@dataclass(frozen=True)
class ScanInput:
    """A scanned tensor: step t sees ``inner`` = slice t of ``outer`` along ``axis`` (0 or more), from the end where ``reverse``."""

    outer: ir.Value
    inner: ir.Value
    axis: int = 0
    reverse: bool = False


@dataclass(frozen=True)
class ScanOutput:
    """A stacked result: ``outer`` holds the ``inner`` of all steps along ``axis``, the last step first where ``reverse``.

    ``empty``: of a Loop as it was given, the sizes onnxruntime knows of ``inner`` (None for others), which ``outer`` has where
    there is no step.
    """

    inner: ir.Value
    outer: ir.Value | None
    axis: int = 0
    reverse: bool = False
    empty: tuple[int | None, ...] | None = None
