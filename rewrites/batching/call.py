"""What a batching rule is given: the operator as it stands in the body, and its operands outside."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.values import rank_of

__all__ = ["Call", "Operand"]


@dataclass(frozen=True)
class Operand:
    """One operand: ``inner`` is the value of one step (its type and shape are per step), ``value`` stands for all steps.

    Where ``batched``, ``value`` has the steps as an extra axis 0; else it is the same in every step and has the shape of ``inner``.
    """

    value: ir.Value
    batched: bool
    inner: ir.Value

    @property
    def rank(self) -> int | None:
        """The rank in one step, without the extra axis."""
        return rank_of(self.inner)


@dataclass(frozen=True)
class Call:
    """One operator to batch.

    ``node``: the operator in the body: attributes, per-step types and shapes. At least one operand is batched.
    ``operands``: one for each input of the node, None where an optional input is absent.
    ``build``: where new nodes go; ``build.opset`` is the opset of what is written (the same as what is read).
    ``steps``: the length of the extra axis as a one-element int64 tensor.
    """

    node: ir.Node
    operands: tuple[Operand | None, ...]
    build: Builder
    steps: ir.Value
