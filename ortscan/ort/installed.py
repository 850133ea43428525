"""Find the newest opset and IR version that onnxruntime loads, and check the number of an opset."""

import functools
import numbers

import onnx

from ortscan.ort.runtimes import Runtime
from ortscan.ort.sessions import evaluate
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = [
    "check_opset",
    "check_opset_of",
    "newest_ir_version",
    "newest_opset",
    "opset_number",
]

_MOST_DIGITS = 20


@functools.cache
def newest_opset() -> int:
    """Return the newest opset that both ortscan and the installed onnxruntime support."""
    from rewrites.migration.versions import NEWEST

    for version in range(min(NEWEST, onnx.defs.onnx_opset_version()), 0, -1):
        if _loads(version, 8):
            return version
    raise AssertionError("onnxruntime loads no opset at all")


@functools.cache
def newest_ir_version() -> int:
    """Return the newest IR version that the installed onnxruntime loads."""
    for version in range(int(onnx.IR_VERSION), 0, -1):
        if _loads(13, version):
            return version
    raise AssertionError("onnxruntime loads no IR version at all")


def _loads(opset: int, ir_version: int) -> bool:
    node = onnx.helper.make_node("Shape", ["a"], ["b"])
    output = onnx.helper.make_tensor_value_info("b", onnx.TensorProto.INT64, [1])
    initializer = onnx.helper.make_tensor("a", onnx.TensorProto.FLOAT, [1], [1.0])
    graph = onnx.helper.make_graph([node], "g", [], [output], [initializer])
    opsets = [onnx.helper.make_opsetid("", opset)]
    return evaluate(onnx.helper.make_model(graph, ir_version=ir_version, opset_imports=opsets)) is not None


def check_opset(opset: object) -> None:
    """Raise OptionError if ``opset`` is neither a number nor a text such as ``auto``.

    The text itself is not checked.
    """
    if not isinstance(opset, str | numbers.Integral) or isinstance(opset, bool):
        raise OptionError(f"opset must be a number or a word such as 'auto', not {shown(opset)}.")


def check_opset_of(runtime: Runtime | None, opset: int) -> None:
    """Raise OptionError if ``opset`` is newer than the newest opset that ``runtime`` runs."""
    if runtime is not None and opset > runtime.opset:
        raise OptionError(f"opset {opset} is newer than {runtime} runs: opset {runtime.opset} is its newest.")


def opset_number(opset: int | str) -> int:
    """Return an opset as a number.

    Raise OptionError if it is no number, or is too new for the installed onnxruntime.
    """
    check_opset(opset)
    if isinstance(opset, str) and not (opset.isascii() and opset.isdecimal() and len(opset) < _MOST_DIGITS):
        raise OptionError(f"opset must be a number, 'auto' or 'latest', not {shown(opset)}.")
    number = int(opset)
    if not 1 <= number <= newest_opset():
        raise OptionError(f"opset must be in 1..{newest_opset()}, the newest the installed onnxruntime runs, not {shown(number)}.")
    return number
