"""Which sizes the free dimensions of the inputs must or may have, read off the operators they meet.

    x [T, B, I],  MatMul(x, W [5, 8])       ->   I is 5
    x [N],  Add(x, c [7])                   ->   N is 7, or 1
    Scan over x [T, 4] and y [S, 4]         ->   T and S are the same

All of it is advice: where it is wrong the original fails, and other sizes are tried.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import onnx_ir as ir

from ortscan.running.analysis import Analysis
from ortscan.verification.sizes.constraints import Sizes

__all__ = ["learn_sizes"]

_ELEMENTWISE = (
    "Add Sub Mul Div Pow Mod Min Max Sum Mean And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual Where PRelu "
    "BitwiseAnd BitwiseOr BitwiseXor BitShift"
)
_BROADCASTING = frozenset(_ELEMENTWISE.split())


def learn_sizes(analysis: Analysis, *, branches: bool = True) -> Sizes:
    """Read all operators of the model, bodies included, those in ``branches`` of Ifs only where asked: one of two is not run."""
    sizes = Sizes()
    for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph, recursive=lambda node: branches or node.op_type != "If"):
        if node.op_type in _BROADCASTING:
            _read_broadcast(node, analysis, sizes)
        elif node.op_type in _READERS:
            _READERS[node.op_type](node, analysis, sizes)
    return sizes


def _read_broadcast(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    shapes = [dims for value in node.inputs if (dims := analysis.dims(value))]
    for one, other in pairwise(shapes):
        for a, b in zip(reversed(one), reversed(other), strict=False):
            sizes.broadcasts(a, b)


def _read_matmul(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    left, right = analysis.dims(node.inputs[0]), analysis.dims(node.inputs[1])
    if left and right:
        sizes.same(left[-1], right[max(len(right) - 2, 0)])
        for a, b in zip(reversed(left[:-2]), reversed(right[:-2]), strict=False):
            sizes.broadcasts(a, b)


def _read_gemm(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    left, right = analysis.dims(node.inputs[0]), analysis.dims(node.inputs[1])
    if left and right and len(left) == len(right) == 2:
        sizes.same(left[1 - _int(node, "transA", 0)], right[_int(node, "transB", 0)])


def _read_concat(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    shapes = [dims for value in node.inputs if (dims := analysis.dims(value))]
    for one, other in pairwise(shapes):
        if len(one) == len(other):
            axis = _int(node, "axis", 1) % len(one)
            for position, (a, b) in enumerate(zip(one, other, strict=True)):
                if position != axis:
                    sizes.same(a, b)


def _read_recurrent(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    """Inputs X [T, B, I], W [D, gates*H, I], R [D, gates*H, H], bias, lengths [B], and states [D, B, H].

    Quantised weights are transposed.
    """
    last = 1 if node.op_type == "DynamicQuantizeLSTM" else 2
    values = [*node.inputs, *[None] * 8]
    x, w, r, _, lengths, *states = values[:7]
    sizes.same(analysis.dim(x, 2), analysis.dim(w, last))
    sizes.same(analysis.dim(lengths, 0), analysis.dim(x, 1))
    for state in states:
        sizes.same(analysis.dim(state, 0), analysis.dim(w, 0))
        sizes.same(analysis.dim(state, 1), analysis.dim(x, 1))
        sizes.same(analysis.dim(state, 2), analysis.dim(r, last))


def _read_scan(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    body, batched = node.attributes["body"].as_graph(), analysis.model.opset_imports.get("", 1) < 9
    operands = node.inputs[1:] if batched else node.inputs
    states = len(body.inputs) - _int(node, "num_scan_inputs", 1)
    axes = node.attributes["scan_input_axes"].as_ints() if "scan_input_axes" in node.attributes else None
    scanned = operands[states:]
    steps = [analysis.dim(v, 1 if batched else axes[i] if axes else 0) for i, v in enumerate(scanned)]
    rows = [analysis.dim(v, 0) for v in operands] if batched else []
    if batched and node.inputs[0] is not None:
        rows.append(analysis.dim(node.inputs[0], 0))
    for series in (steps, rows):
        for one, other in pairwise(series):
            sizes.same(one, other)
    for formal, result in zip(body.inputs[:states], body.outputs, strict=False):
        for a, b in zip(analysis.dims(formal) or [], analysis.dims(result) or [], strict=False):
            sizes.same(a, b)


def _read_conv(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    channels = analysis.dim(node.inputs[1], 1)
    if isinstance(channels, int):
        sizes.same(analysis.dim(node.inputs[0], 1), channels * _int(node, "group", 1))


def _read_channels(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    sizes.same(analysis.dim(node.inputs[0], 1), analysis.dim(node.inputs[1], 0))


def _read_reverse_sequence(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    sizes.same(analysis.dim(node.inputs[0], _int(node, "batch_axis", 1)), analysis.dim(node.inputs[1], 0))


def _read_einsum(node: ir.Node, analysis: Analysis, sizes: Sizes) -> None:
    terms = node.attributes["equation"].as_string().replace(" ", "").split("->")[0].split(",")
    letters: dict[str, int | str | None] = {}
    for letter, dim in _letters(node, analysis, terms):
        sizes.same(letters.setdefault(letter, dim), dim)


def _letters(node: ir.Node, analysis: Analysis, terms: list[str]) -> Iterator[tuple[str, int | str | None]]:
    for term, value in zip(terms, node.inputs, strict=False):
        dims = analysis.dims(value)
        if dims is not None and len(dims) == len(term) and "." not in term:
            yield from zip(term, dims, strict=True)


def _int(node: ir.Node, name: str, default: int) -> int:
    return int(node.attributes[name].as_int()) if name in node.attributes else default


_READERS: dict[str, Callable[[ir.Node, Analysis, Sizes], None]] = {
    "MatMul": _read_matmul,
    "Gemm": _read_gemm,
    "Concat": _read_concat,
    "RNN": _read_recurrent,
    "LSTM": _read_recurrent,
    "GRU": _read_recurrent,
    "DynamicQuantizeLSTM": _read_recurrent,
    "Scan": _read_scan,
    "Conv": _read_conv,
    "BatchNormalization": _read_channels,
    "LayerNormalization": _read_broadcast,
    "ReverseSequence": _read_reverse_sequence,
    "Einsum": _read_einsum,
}
