"""How nodes and values of a model look in a picture: their kind, and short words for them."""

import onnx_ir as ir

from ortscan.drawing.picture import Kind
from rewrites.base.plain_text import cut
from rewrites.native.functions import DOMAIN

__all__ = ["constants", "full_name", "is_constant", "kind_of", "operator", "shape", "short", "tip"]

_LONGEST, _LONGEST_NAME, _LONGEST_TIP, _LONGEST_DIM = 22, 66, 300, 6
_TIMES = "\N{MULTIPLICATION SIGN}"
_HEAVY = {
    *("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "MatMulInteger", "QLinearMatMul", "QLinearConv", "ConvInteger"),
    *("Attention", "MultiHeadAttention", "LinearAttention", "FusedMatMul", "MatMulNBits", "DynamicQuantizeMatMul", "CumSum"),
}
_NATIVE = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"}
_MOVE = {
    *("Reshape", "Transpose", "Slice", "Split", "Concat", "Gather", "GatherElements", "GatherND", "Squeeze", "Unsqueeze", "Expand"),
    *("Identity", "Shape", "Cast", "CastLike", "Pad", "Tile", "Flatten", "ConstantOfShape", "Size", "Range", "ReverseSequence"),
    *("ScatterND", "ScatterElements", "SplitToSequence", "ConcatFromSequence", "SequenceAt", "SequenceInsert", "SequenceEmpty"),
}


def kind_of(node: ir.Node) -> Kind:
    """Return how an operator looks."""
    if node.op_type in _NATIVE or node.domain == DOMAIN:
        return "native"
    if node.op_type in _HEAVY:
        return "heavy"
    return "move" if node.op_type in _MOVE else "plain"


def is_constant(value: ir.Value) -> bool:
    """Whether ``value`` is an initializer, or given by a Constant: it is not drawn."""
    producer = value.producer()
    return value.is_initializer() or (producer is not None and producer.op_type == "Constant" and producer.domain == "")


def constants(node: ir.Node) -> str:
    """Return the shapes of the constants a node takes, of those with more than one element."""
    values = [value for value in node.inputs if value is not None and is_constant(value)]
    shapes = [shape(value) for value in values if value.shape is not None and any(dim != 1 for dim in value.shape)]
    return " ".join(shapes) if len(shapes) <= 2 else f"{' '.join(shapes[:2])} …"


def shape(value: ir.Value) -> str:
    """Return the sizes of a value in one word; nothing where none is known."""
    if value.shape is None or len(value.shape) == 0:
        return ""
    dims = [str(dim) if isinstance(dim, int) else _dim(dim.value) for dim in value.shape.dims]
    return cut(_TIMES.join(dims), _LONGEST) if any(dim != "?" for dim in dims) else ""


def operator(node: ir.Node) -> str:
    """Return what a node is."""
    return cut(node.op_type, _LONGEST)


def full_name(value: ir.Value) -> str:
    """Return what a value is called, with its shape, for who points at it."""
    return f"{cut(value.name or '', _LONGEST_NAME)} {shape(value)}".strip()


def short(name: str | None) -> str:
    """Return the last part of a path of names: the parts before it say where one is."""
    last = (name or "").rstrip("/").rpartition("/")[2]
    return last if len(last) <= _LONGEST else f"{last[: _LONGEST - 9]}…{last[-8:]}"


def tip(node: ir.Node) -> str:
    """Return what is said of a node to who points at it."""
    gives = ", ".join(map(full_name, list(node.outputs)[:4]))
    named = f" {cut(node.name, _LONGEST_NAME)}" if node.name else ""
    domain = f"{cut(node.domain, _LONGEST_NAME)}::" if node.domain else ""
    return cut(f"{domain}{cut(node.op_type, _LONGEST_NAME)}{named} → {gives}", _LONGEST_TIP)


def _dim(name: str | None) -> str:
    return (name if len(name) <= _LONGEST_DIM else f"{name[: _LONGEST_DIM - 1]}…") if name else "?"
