"""Which opsets there are: those whose operators are known here and to onnx, and which the installed onnxruntime accepts."""

import functools
import numbers

import onnx

from ortscan.ort.runtimes import Runtime
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown
from rewrites.migration.versions import NEWEST

__all__ = ["check_opset", "check_opset_of", "newest_ir_version", "newest_opset", "opset_number"]

_MOST_DIGITS = 20


@functools.cache
def newest_opset() -> int:
    """Return the newest opset whose operators are known and that the installed onnxruntime loads, by trying."""
    from ortscan.ort.evaluate import evaluate

    for version in range(min(NEWEST, onnx.defs.onnx_opset_version()), 0, -1):
        if evaluate(_smallest(version, 8)) is not None:
            return version
    raise AssertionError("onnxruntime loads no opset at all")


@functools.cache
def newest_ir_version() -> int:
    """Return the newest IR version that the installed onnxruntime loads, by trying."""
    from ortscan.ort.evaluate import evaluate

    for version in range(int(onnx.IR_VERSION), 0, -1):
        if evaluate(_smallest(13, version)) is not None:
            return version
    raise AssertionError("onnxruntime loads no IR version at all")


def _smallest(opset: int, ir_version: int) -> onnx.ModelProto:
    graph = onnx.helper.make_graph([onnx.helper.make_node("Shape", ["a"], ["b"])], "g", [], [_info()], [_one()])
    return onnx.helper.make_model(graph, ir_version=ir_version, opset_imports=[onnx.helper.make_opsetid("", opset)])


def _info() -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info("b", onnx.TensorProto.INT64, [1])


def _one() -> onnx.TensorProto:
    return onnx.helper.make_tensor("a", onnx.TensorProto.FLOAT, [1], [1.0])


def check_opset(opset: object) -> None:
    """Raise OptionError for what is neither a word nor a number."""
    if not isinstance(opset, str | numbers.Integral) or isinstance(opset, bool):
        raise OptionError(f"opset must be a number or a word such as 'auto', not {shown(opset)}.")


def check_opset_of(runtime: Runtime | None, opset: int) -> None:
    """Raise OptionError where a release of onnxruntime runs no opset as new as ``opset``."""
    if runtime is not None and opset > runtime.opset:
        raise OptionError(f"opset {opset} is newer than {runtime} runs: opset {runtime.opset} is its newest.")


def opset_number(opset: int | str) -> int:
    """Read an opset given as a number; raises OptionError for what is none, or is newer than onnxruntime runs."""
    check_opset(opset)
    if isinstance(opset, str) and not (opset.isascii() and opset.isdecimal() and len(opset) < _MOST_DIGITS):
        raise OptionError(f"opset must be a number, 'auto' or 'latest', not {shown(opset)}.")
    number = int(opset)
    if not 1 <= number <= newest_opset():
        raise OptionError(f"opset must be in 1..{newest_opset()}, the newest the installed onnxruntime runs, not {shown(number)}.")
    return number
