"""Find the values of an operand at which the behaviour of an operator changes.

If the output is a linear function of an operand x, find the scale and the shift in ``scale * x + shift`` instead. Examples:

    Greater(x, 5.0)          ->   5.0
    LabelEncoder <keys_strings = ["cat", "dog"]> (x)   ->   "cat", "dog"
    QuantizeLinear(x, 0.5)   ->   0.25, -0.25, 0.75, ... (ties)
    Mul(x, 2)                ->   2 * x + 0
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import onnx

__all__ = ["COMPARISONS", "Known", "Trace", "named_at", "patterns_of", "text", "traces_of"]

Known = float | int | str
Constants = Callable[[int], Sequence[Known]]
"""A function that returns the elements of the operand at a position if the operand is constant, otherwise nothing."""

COMPARISONS = frozenset(["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"])
_WITH_EACH_OTHER = COMPARISONS | {"Min", "Max", "Mod", "Div", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
_ATTRIBUTES = {
    "LabelEncoder": "keys_strings keys_int64s keys_floats keys_tensor classes_strings",
    "CategoryMapper": "cats_strings cats_int64s",
    "OneHotEncoder": "cats_strings cats_int64s",
    "TfIdfVectorizer": "pool_strings pool_int64s",
    "StringNormalizer": "stopwords",
    "Clip": "min max",
    "Binarizer": "threshold",
    "Imputer": "replaced_value_float replaced_value_int64",
    "ThresholdedRelu": "alpha",
    "Shrink": "lambd",
    "TreeEnsembleClassifier": "nodes_values",
    "TreeEnsembleRegressor": "nodes_values",
    "TreeEnsemble": "nodes_splits",
}
_TIES = (0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, -3.5)
_ENDS = (255.5, 254.5, -0.5, 127.5, 126.5, -128.5, -127.5)
_PLAIN = re.compile(r"[^\\^$.|?*+()\[\]{}]+")
_FIRST = (
    "Cast CastLike Identity Reshape Squeeze Unsqueeze Flatten Transpose Slice Gather GatherElements GatherND Expand Tile Split Pad "
    "Dropout ReduceMax ReduceMin ReduceMean TopK MaxPool Compress ReverseSequence SequenceAt ConcatFromSequence SplitToSequence "
    "OptionalGetElement Optional Unique Clip Round Floor Ceil Relu Trilu DepthToSpace SpaceToDepth StringNormalizer StringSplit"
)
_FROM_FIRST = frozenset(_FIRST.split())
_FROM_ANY = frozenset(["Concat", "SequenceConstruct", "SequenceInsert", "Min", "Max"])
_FROM = {"Where": (1, 2), "ScatterElements": (0, 2), "ScatterND": (0, 2), "Scatter": (0, 2)}


def named_at(node: onnx.NodeProto, position: int, constants: Constants) -> Iterator[Known]:
    """Yield the values of the operand at ``position`` at which the behaviour of ``node`` changes.

    ``constants`` is a function that returns the elements of the operand at a position, or () if this operand is no constant.
    """
    if node.op_type in _WITH_EACH_OTHER:
        for other in range(len(node.input)):
            if other != position:
                yield from constants(other)
        return
    if position:
        return
    names = _ATTRIBUTES.get(node.op_type, "").split()
    for attribute in node.attribute:
        if attribute.name in names:
            yield from _values_of(attribute)
    match node.op_type:
        case "Clip":
            yield from (*constants(1), *constants(2))
        case "Round":
            yield from _TIES
        case "HardSwish":
            yield from (3.0, -3.0)
        case "HardSigmoid":
            floats = {each.name: each.f for each in node.attribute}
            slope, height = floats.get("alpha", 0.2), floats.get("beta", 0.5)
            yield from ((level - height) / slope for level in (0.0, 1.0) if slope)
        case "QuantizeLinear":
            zero = next((number for number in constants(2) if isinstance(number, int)), 0)
            scales = [scale for scale in constants(1) if isinstance(scale, float)]
            for scale, step in itertools.product(scales[:4], (*_TIES, *(end - zero for end in _ENDS))):
                yield scale * step
        case "OneHot":
            depth = next((number for number in constants(1) if not isinstance(number, str)), None)
            yield from () if depth is None else (depth - 1, depth, -depth, -depth - 1)
        case "StringSplit":
            yield from (f"a{text(each.s)}b" for each in node.attribute if each.name == "delimiter")
        case "RegexFullMatch":
            for pattern in patterns_of(node):
                yield from _PLAIN.findall(pattern)


def patterns_of(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the regular expression of ``node`` if it is a RegexFullMatch, otherwise nothing."""
    if node.op_type == "RegexFullMatch":
        yield from (text(each.s) for each in node.attribute if each.name == "pattern")


def text(value: bytes) -> str:
    """Convert a string in a model, which onnx stores as bytes, to a Python str."""
    return value.decode("utf-8", "replace")


def _values_of(attribute: onnx.AttributeProto) -> Iterator[Known]:
    match attribute.type:
        case onnx.AttributeProto.FLOAT:
            yield attribute.f
        case onnx.AttributeProto.INT:
            yield attribute.i
        case onnx.AttributeProto.TENSOR:
            values = onnx.numpy_helper.to_array(attribute.t).ravel().tolist()
            yield from (text(value) if isinstance(value, bytes) else value for value in values)
        case _:
            yield from (*map(text, attribute.strings), *attribute.ints, *attribute.floats)


@dataclass(frozen=True)
class Trace:
    """A linear dependence of a value on ``input``, the name of an input of the model.

    The elements of the value are ``scale * x + shift``. Here x stands for the elements of the input, possibly in another shape or
    order.
    """

    input: str
    scale: float | int = 1
    shift: float | int = 0


def traces_of(node: onnx.NodeProto, operands: Sequence[Sequence[Trace]], constants: Constants) -> Iterator[Trace]:
    """Yield the traces of the first output of ``node``.

    ``operands`` has the traces of each input of ``node``. ``constants`` is a function that returns the elements of the input at a
    position, or () if this input is no constant.
    """
    first = operands[0] if operands else ()
    match node.op_type:
        case kind if kind in _FROM_FIRST:
            yield from first
        case kind if kind in _FROM_ANY:
            yield from itertools.chain(*operands)
        case kind if kind in _FROM:
            yield from (trace for at in _FROM[kind] if at < len(operands) for trace in operands[at])
        case "Neg":
            yield from (Trace(trace.input, -trace.scale, -trace.shift) for trace in first)
        case "Abs":
            yield from (Trace(trace.input, sign * trace.scale, sign * trace.shift) for trace in first for sign in (1, -1))
        case "Add" | "Sub" | "Mul" | "Div" if len(operands) == 2:
            for at, operand in enumerate(operands):
                numbers = [each for each in constants(1 - at) if not isinstance(each, str)]
                for trace in operand if len(set(numbers)) == 1 else ():
                    yield from _trace_of_result(trace, node.op_type, numbers[0], at)


def _trace_of_result(trace: Trace, kind: str, number: float, at: int) -> Iterator[Trace]:
    """Yield the trace of the result of an operator with two operands, one of which is a constant.

    Yield nothing if the result is not linear in the other operand, or is always 0.

    Args:
        trace: the trace of the other operand.
        kind: the operator: Add, Sub, Mul or Div.
        number: the constant.
        at: the position of the operand with the trace: 0 or 1.
    """
    scale, shift = trace.scale, trace.shift
    if kind == "Add":
        yield Trace(trace.input, scale, shift + number)
    elif kind == "Sub":
        yield Trace(trace.input, scale, shift - number) if at == 0 else Trace(trace.input, -scale, number - shift)
    elif kind == "Mul" and number:
        yield Trace(trace.input, scale * number, shift * number)
    elif kind == "Div" and at == 0 and number:
        yield Trace(trace.input, scale / number, shift / number)
