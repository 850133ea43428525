"""Prepare the body of a loop to run many times.

The body runs as numpy calls, with onnxruntime, or with onnx's reference implementation: the first of these three that supports all
its operators. numpy has the smallest overhead per step, but only runs elementwise operators. The reference implementation runs
operators for which onnxruntime has no kernel.

A body of elementwise operators becomes a Python function of numpy calls:

    p = Mul(s, s)  q = Add(p, x)  n = Max(q, c)    ->    p = multiply(s, s); q = add(p, x); n = maximum(q, c)

An operator is compiled only if numpy computes it in the type of its operands, and with the same results up to rounding. Integer
division, shifts, Pow, Mod and float8 are therefore excluded, because numpy differs in edge cases. The package ml_dtypes adds
bfloat16 to numpy.
"""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx

from ortscan.base.messages import quietly
from ortscan.errors import UnsupportedModel
from rewrites.base.errors import is_raised_by
from rewrites.python_ops.reference import reference_evaluator

__all__ = ["OPERATORS", "Body", "compiled", "prepared_body"]

_FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})
_INTS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_NUMBERS = _FLOATS | _INTS
_BOOLS = frozenset({"bool"})

_Table = dict[str, tuple[Callable[..., Any], frozenset[str]]]
_SAME_TYPE: _Table = {
    "Identity": (lambda x: x, _NUMBERS | _BOOLS),
    "Add": (np.add, _NUMBERS),
    "Sub": (np.subtract, _NUMBERS),
    "Mul": (np.multiply, _NUMBERS),
    "Div": (np.divide, _FLOATS),
    "Neg": (np.negative, _NUMBERS),
    "Abs": (np.abs, _NUMBERS),
    "Max": (np.maximum, _NUMBERS),
    "Min": (np.minimum, _NUMBERS),
    "Exp": (np.exp, _FLOATS),
    "Tanh": (np.tanh, _FLOATS),
    "Sqrt": (np.sqrt, _FLOATS),
    "Sin": (np.sin, _FLOATS),
    "Cos": (np.cos, _FLOATS),
    "And": (np.logical_and, _BOOLS),
    "Or": (np.logical_or, _BOOLS),
    "Xor": (np.logical_xor, _BOOLS),
    "Not": (np.logical_not, _BOOLS),
}
_COMPARISONS: _Table = {
    "Equal": (np.equal, _NUMBERS | _BOOLS),
    "Less": (np.less, _NUMBERS),
    "Greater": (np.greater, _NUMBERS),
    "LessOrEqual": (np.less_equal, _NUMBERS),
    "GreaterOrEqual": (np.greater_equal, _NUMBERS),
}
OPERATORS = frozenset({*_SAME_TYPE, *_COMPARISONS, "Where"})
"""The operators that ``compiled`` supports."""

_PAIRS_ONLY = frozenset({"Max", "Min"})
_SINCE = 7


def compiled(model: onnx.ModelProto) -> Callable[[Sequence[np.ndarray]], Sequence[Any]] | None:
    """Return a function that computes the outputs of ``model`` from its inputs with numpy.

    Return None if numpy cannot compute one of the operators, or if the model has functions, initializers or an old opset.
    """
    graph = model.graph
    version = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 0)
    if version < _SINCE or model.functions or graph.initializer or not graph.node:
        return None
    kinds = {info.name: _kind(info.type.tensor_type.elem_type) for info in graph.input}
    used: dict[str, Any] = {}
    names = {name: f"v{number}" for number, name in enumerate(kinds)}
    lines = []
    for node in graph.node:
        match = _function(node, kinds)
        if match is None:
            return None
        function, kind = match
        used[f"f{len(used)}"] = function
        arguments = ", ".join(names[name] for name in node.input)
        names[node.output[0]] = f"v{len(names)}"
        kinds[node.output[0]] = kind
        lines.append(f"  {names[node.output[0]]} = f{len(used) - 1}({arguments})")
    results = "".join(f"{names[info.name]}, " for info in graph.output)
    heads = "".join(f"{names[info.name]}, " for info in graph.input)
    source = "\n".join([f"def run(values):\n  {heads}= values", *lines, f"  return ({results})"])
    exec(compile(source, "<elementwise body>", "exec"), used)
    run: Callable[[Sequence[np.ndarray]], Sequence[Any]] = used["run"]
    return _quietly(run)


def _quietly(run: Callable[[Sequence[np.ndarray]], Sequence[Any]]) -> Callable[[Sequence[np.ndarray]], Sequence[Any]]:
    """Return ``run`` without numpy's warnings about infinities and NaN."""

    def quiet(values: Sequence[np.ndarray]) -> Sequence[Any]:
        with np.errstate(all="ignore"):
            return run(values)

    return quiet


def _function(node: onnx.NodeProto, kinds: dict[str, str]) -> tuple[Callable[..., Any], str] | None:
    if node.domain not in ("", "ai.onnx") or node.attribute or len(node.output) != 1 or not all(n in kinds for n in node.input):
        return None
    types = [kinds[name] for name in node.input]
    if node.op_type in _PAIRS_ONLY and len(types) != 2:
        return None
    for table, result in ((_SAME_TYPE, types[0]), (_COMPARISONS, "bool")):
        if node.op_type in table and len(set(types)) == 1:
            function, allowed = table[node.op_type]
            return (function, result) if types[0] in allowed else None
    if node.op_type == "Where" and types[0] == "bool" and types[1] == types[2] and types[1] in _NUMBERS:
        return np.where, types[1]
    return None


def _kind(elem_type: int) -> str:
    if elem_type == onnx.TensorProto.BFLOAT16:
        return str(np.dtype(ml_dtypes.bfloat16).name)
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(elem_type).name)
    except KeyError:
        return "unknown"


Body = Callable[[Sequence[np.ndarray]], Sequence[Any]]

_NARROW = frozenset(
    onnx.TensorProto.DataType.Value(name)
    for name in ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "INT4", "UINT4")
)


@quietly
def prepared_body(model: onnx.ModelProto) -> Body:
    """Return a function that computes the outputs of ``model`` from a list of its inputs.

    Raise UnsupportedModel if neither numpy nor onnxruntime nor onnx's reference implementation can run the model.
    """
    by_numpy = compiled(model)
    if by_numpy is not None:
        return by_numpy
    return _by_onnxruntime(model) or _by_reference(model)


def _by_onnxruntime(model: onnx.ModelProto) -> Body | None:
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # the original class, not a patched one

    if any(info.type.tensor_type.elem_type in _NARROW for info in (*model.graph.input, *model.graph.output)):
        return None
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    try:
        session = InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return None  # the reference is tried next
    names = [info.name for info in model.graph.input]
    wanted = [info.name for info in model.graph.output]
    return lambda values: session.run(wanted, dict(zip(names, values, strict=True)))


def _by_reference(model: onnx.ModelProto) -> Body:
    try:
        evaluator = reference_evaluator(model)
    except Exception as error:
        if not is_raised_by(error, "onnx", "numpy"):
            raise
        reason = str(error).splitlines()[0]
        raise UnsupportedModel(f"neither onnxruntime nor onnx's reference can run a Python call: {reason}") from error
    names = [info.name for info in model.graph.input]
    return lambda values: list(evaluator.run(None, dict(zip(names, values, strict=True))))
