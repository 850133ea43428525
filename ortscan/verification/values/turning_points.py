"""At which values of an operand an operator turns: those that it is compared with, looked up among, clipped at or rounded from.

Greater(x, 5.0)        ->   5.0
LabelEncoder <keys_strings = ["cat", "dog"]> (x)   ->   "cat", "dog"
QuantizeLinear(x, 0.5)   ->   0.25, -0.25, 0.75, ..., which are ties
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence

import onnx

__all__ = ["COMPARISONS", "Known", "named_at", "patterns_of"]

Known = float | int | str
Constants = Callable[[int], Sequence[Known]]

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


def named_at(node: onnx.NodeProto, position: int, constants: Constants) -> Iterator[Known]:
    """Return the values of the operand at ``position`` at which ``node`` turns; ``constants`` gives those of the other operands."""
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
            slope, height = _float(node, "alpha", 0.2), _float(node, "beta", 0.5)
            yield from ((level - height) / slope for level in (0.0, 1.0) if slope)
        case "QuantizeLinear":
            zero = next((one for one in constants(2) if isinstance(one, int)), 0)
            scales = [scale for scale in constants(1) if isinstance(scale, float)]
            for scale, step in itertools.product(scales[:4], (*_TIES, *(end - zero for end in _ENDS))):
                yield scale * step
        case "OneHot":
            depth = next((one for one in constants(1) if not isinstance(one, str)), None)
            yield from () if depth is None else (depth - 1, depth, -depth, -depth - 1)
        case "StringSplit":
            yield from (f"a{each.s.decode('utf-8', 'replace')}b" for each in node.attribute if each.name == "delimiter")
        case "RegexFullMatch":
            for pattern in patterns_of(node):
                yield from _PLAIN.findall(pattern)


def patterns_of(node: onnx.NodeProto) -> Iterator[str]:
    """Return the pattern that ``node`` matches strings with, if it does."""
    if node.op_type == "RegexFullMatch":
        yield from (each.s.decode("utf-8", "replace") for each in node.attribute if each.name == "pattern")


def _values_of(attribute: onnx.AttributeProto) -> Iterator[Known]:
    match attribute.type:
        case onnx.AttributeProto.FLOAT:
            yield attribute.f
        case onnx.AttributeProto.INT:
            yield attribute.i
        case onnx.AttributeProto.TENSOR:
            values = onnx.numpy_helper.to_array(attribute.t).ravel().tolist()
            yield from (value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values)
        case _:
            yield from (text.decode("utf-8", "replace") for text in attribute.strings)
            yield from (*attribute.ints, *attribute.floats)


def _float(node: onnx.NodeProto, name: str, default: float) -> float:
    return next((each.f for each in node.attribute if each.name == name), default)
