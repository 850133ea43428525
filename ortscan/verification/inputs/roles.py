"""Find out which values the inputs of a model can have, from the operators that read these inputs.

    Gather(table [100, 8], ids)      ->   ids in 0..99
    LSTM(..., sequence_lens)         ->   sequence_lens in 1..T
    Loop(n, ...)                     ->   n is a trip count

The possible values of an input are its role. The search follows an input to these operators through operators that keep or shift
its values (Cast, Reshape, Add, bodies of loops, ...). If a role is wrong, the original fails, and other values are tried.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from ortscan.running.analysis import Analysis

__all__ = ["FLOAT_TYPES", "Role", "find_roles", "owners_of"]

_FIRST = (
    "Cast CastLike Identity Reshape Squeeze Unsqueeze Flatten Transpose Slice Gather GatherElements GatherND Expand Tile Split "
    "Div Mod Clip Abs Neg ReduceMax ReduceMin ReduceSum CumSum Pad Dropout Floor Ceil Round SequenceAt ConcatFromSequence "
    "OptionalGetElement"
)
_CARRIED_FROM_FIRST = frozenset(_FIRST.split())
_CARRIED_FROM_ANY = frozenset(["Add", "Sub", "Mul", "Min", "Max", "Sum", "Concat", "SequenceConstruct", "SequenceInsert"])
FLOAT_TYPES = frozenset([ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16])
_DIVISORS = frozenset([0, -1])
"""Divisors that are never tried. The lowest integer divided by -1 crashes onnxruntime."""
_CARRIED_FROM = {"Where": (1, 2), "ScatterElements": (0, 2), "ScatterND": (0, 2), "Scatter": (0, 2)}

_SMALL: Mapping[tuple[str, int], tuple[tuple[int, int], tuple[int, int]]] = {
    ("Range", 0): ((0, 1), (-3, 3)),
    ("Range", 1): ((2, 5), (-3, 9)),
    ("Range", 2): ((1, 1), (-2, 3)),
    ("ConstantOfShape", 0): ((1, 3), (0, 5)),
    ("Tile", 1): ((1, 3), (0, 4)),
    ("Expand", 1): ((1, 3), (0, 4)),
    ("Pad", 1): ((0, 2), (-1, 3)),
    ("TopK", 1): ((1, 1), (0, 4)),
    ("Resize", 2): ((1, 2), (1, 3)),
    ("Resize", 3): ((1, 4), (1, 9)),
    ("Upsample", 1): ((1, 2), (1, 3)),
    ("Slice", 1): ((0, 0), (-4, 4)),
    ("Slice", 2): ((1, 4), (-4, 6)),
    ("Slice", 3): ((0, 0), (-1, 0)),
    ("Slice", 4): ((1, 2), (-2, 3)),
    ("Squeeze", 1): ((0, 0), (-1, 0)),
    ("Unsqueeze", 1): ((0, 0), (-1, 0)),
    ("CumSum", 1): ((0, 0), (-1, 0)),
    ("SequenceAt", 1): ((0, 0), (-2, 1)),
    ("OneHot", 1): ((2, 5), (1, 9)),
}
"""By operator and position of the input: the range of usual values, and the range of all values unless a rank or size limits it."""

_AXES = {("Slice", 3): 0, ("Squeeze", 1): 0, ("Unsqueeze", 1): 1, ("CumSum", 1): 0}
_FEW = 2
_STEPS = frozenset([("Range", 2), ("Slice", 4)])
_Bound = tuple[int | str, int, int]
"""A bound as (size, factor, summand), with the value size * factor + summand. The size is a number or the name of a dimension."""


@dataclass(frozen=True)
class Role:
    """The values that an input can have.

    Attributes:
        low: the smallest usual value.
        highs: upper bounds of usual values. A pair such as ("T", -1) is the bound T - 1. The lowest bound applies.
        is_trip_count: True for a trip count.
        positive: True if the usual values are above 0.
        lengths: True for sequence lengths that may also be 0.
        ranges: ranges of unusual values, such as negative indices. An unusual value must be in all ranges.
        excluded: numbers that are not allowed, although they are in ``ranges``.
        is_strict: True if only usual and unusual values may be fed, because others may cause large sizes or crash onnxruntime.
    """

    low: int = 0
    highs: tuple[tuple[int | str, int], ...] = ()
    is_trip_count: bool = False
    positive: bool = False
    lengths: bool = False
    ranges: tuple[tuple[_Bound, _Bound], ...] = ()
    excluded: frozenset[int] = frozenset()
    is_strict: bool = False

    def usual(self, sizes: Mapping[str, int]) -> range:
        """Return the usual values at ``sizes``. If there is no upper bound, return only a few values."""
        highs = [_at((size, 1, plus), sizes) for size, plus in self.highs]
        return range(self.low, max(self.low, min(highs, default=self.low + _FEW)) + 1)

    def allows(self, number: int, sizes: Mapping[str, int]) -> bool:
        """Return True if ``number`` is a usual or an unusual value of the input at ``sizes``."""
        within = all(_at(low, sizes) <= number <= _at(high, sizes) for low, high in self.ranges)
        return number in self.usual(sizes) or (bool(self.ranges) and within and number not in self.excluded)

    def unusual(self, sizes: Mapping[str, int]) -> list[int]:
        """Return the unusual values at ``sizes``: the largest, the smallest, -1, then others from both ends."""
        low = max((_at(low, sizes) for low, _ in self.ranges), default=0)
        high = min((_at(high, sizes) for _, high in self.ranges), default=-1)
        usual = self.usual(sizes)
        numbers = [number for number in range(low, high + 1) if number not in self.excluded and number not in usual]
        ordered = [numbers[-1 - at // 2] if at % 2 == 0 else numbers[at // 2] for at in range(len(numbers))]
        return [
            *ordered[:2],
            *(number for number in ordered[2:] if number == -1),
            *(number for number in ordered[2:] if number != -1),
        ]


def _at(bound: _Bound, sizes: Mapping[str, int]) -> int:
    size, times, plus = bound
    return (size if isinstance(size, int) else sizes[size]) * times + plus


def _range(low: int, high: int) -> tuple[tuple[_Bound, _Bound], ...]:
    return (((low, 1, 0), (high, 1, 0)),)


def find_roles(analysis: Analysis) -> dict[str, Role]:
    """Return the role of each input by its name. Inputs about which nothing is known are not included."""
    owners, roles = owners_of(analysis), {}
    for value in analysis.model.graph.inputs:
        uses = [role for role in _uses(value, analysis, owners) if role is not None]
        bare = any(not role.ranges for role in uses)
        if uses:
            roles[value.name or ""] = Role(
                low=max(role.low for role in uses),
                highs=tuple(dict.fromkeys(high for role in uses for high in role.highs)),
                is_trip_count=any(role.is_trip_count for role in uses),
                positive=any(role.positive for role in uses),
                lengths=all(role.lengths or not role.positive for role in uses) and any(role.lengths for role in uses),
                ranges=() if bare else tuple(dict.fromkeys(bounds for role in uses for bounds in role.ranges)),
                excluded=frozenset().union(*(role.excluded for role in uses)),
                is_strict=any(role.is_strict for role in uses),
            )
    return roles


def owners_of(analysis: Analysis) -> dict[ir.Graph, ir.Node]:
    """Return, for each body in the model, the node to which it belongs."""
    return {
        attribute.as_graph(): node
        for node in ir.traversal.RecursiveGraphIterator(analysis.model.graph)
        for attribute in node.attributes.values()
        if attribute.type == ir.AttributeType.GRAPH
    }


def _uses(start: ir.Value, analysis: Analysis, owners: Mapping[ir.Graph, ir.Node]) -> Iterator[Role | None]:
    """Yield a role for each use of the elements of ``start``. Yield None for a use that limits no values.

    ``owners`` is the result of `owners_of`.
    """
    pending, seen = [start], {start}
    while pending:
        value = pending.pop()
        targets: list[ir.Value] = []
        if value.is_graph_output() and isinstance(value.graph, ir.Graph) and value.graph in owners:
            targets += _receivers_of_body_output(value, value.graph, owners[value.graph])
        for use in value.uses():
            yield _role_at(use.node, use.idx, value.dtype or start.dtype, analysis)
            targets += _values_with_elements_of(use.node, use.idx, analysis)
        for target in targets:
            if target not in seen:
                seen.add(target)
                pending.append(target)


def _role_at(node: ir.Node, position: int, kind: ir.DataType | None, analysis: Analysis) -> Role | None:
    """Return the role of a value of type ``kind`` that ``node`` reads at ``position``, or None."""

    def below(value: ir.Value | None, axis: int) -> Role:
        size = analysis.dim(value, axis)
        return Role(ranges=_range(-1, 2)) if size is None else Role(0, ((size, -1),), ranges=(((size, -1, 0), (size, 1, -1)),))

    def up_to(value: ir.Value | None, axis: int) -> Role:
        size = analysis.dim(value, axis)
        return Role(1, () if size is None else ((size, 0),), positive=True, lengths=node.op_type != "Scan")

    match node.op_type, position:
        case "Gather" | "GatherElements" | "ScatterElements" | "Scatter", 1:
            return below(node.inputs[0], _int(node, "axis", 0))
        case "GatherND" | "ScatterND", 1:
            return below(node.inputs[0], _int(node, "batch_dims", 0))
        case "RNN" | "LSTM" | "GRU" | "DynamicQuantizeLSTM", 4:
            return up_to(node.inputs[0], 0)
        case "ReverseSequence", 1:
            return up_to(node.inputs[0], _int(node, "time_axis", 0))
        case "Scan", 0 if analysis.model.opset_imports.get("", 1) < 9:
            return up_to(node.inputs[-1], 1)
        case "Loop", 0:
            return Role(is_trip_count=True)
        case "Div" | "Mod", 1:
            return None if kind in FLOAT_TYPES else Role(1, positive=True, ranges=_range(-5, 9), excluded=_DIVISORS, is_strict=True)
    use = (node.op_type, position)
    if use not in _SMALL:
        return None
    (low, high), (least, most) = _SMALL[use]
    ranges = _range(least, most)
    dims = analysis.dims(node.inputs[0])
    if use in _AXES and dims is not None:
        rank = len(dims) + _AXES[use]
        ranges = _range(-rank, rank - 1)
    if node.op_type == "TopK" and (size := analysis.dim(node.inputs[0], _int(node, "axis", -1))) is not None:
        ranges = (((0, 1, 0), (size, 1, 0)),)
    without = frozenset([0]) if use in _STEPS else frozenset[int]()
    return Role(low, ((high, 0),), positive=low > 0, ranges=ranges, excluded=without, is_strict=use not in _AXES)


def _values_with_elements_of(node: ir.Node, position: int, analysis: Analysis) -> list[ir.Value]:
    """Return the values whose elements come from the input of ``node`` at ``position``.

    For a loop, return the matching input of its body. For any other node, return outputs of ``node``.
    """
    if node.op_type in ("Scan", "Loop"):
        body = node.attributes["body"].as_graph()
        formal = position - (node.op_type == "Scan" and analysis.model.opset_imports.get("", 1) < 9)
        if node.op_type == "Loop" and position < 2:
            return []
        return [body.inputs[formal]] if 0 <= formal < len(body.inputs) else []
    first = position == 0 and node.op_type in _CARRIED_FROM_FIRST
    if first or node.op_type in _CARRIED_FROM_ANY or position in _CARRIED_FROM.get(node.op_type, ()):
        return list(node.outputs)
    return []


def _receivers_of_body_output(value: ir.Value, body: ir.Graph, node: ir.Node) -> list[ir.Value]:
    """Return the values that get the elements of ``value``, an output of the body of ``node``.

    These are an output of ``node`` and, in a loop, the state of the next step.
    """
    targets: list[ir.Value] = []
    for position, output in enumerate(body.outputs):
        if output is not value:
            continue
        result = position - 1 if node.op_type == "Loop" else position
        if 0 <= result < len(node.outputs):
            targets.append(node.outputs[result])
        carried = len(body.inputs) - (_int(node, "num_scan_inputs", 0) if node.op_type == "Scan" else 0)
        if node.op_type == "Scan" and position < carried:
            targets.append(body.inputs[position])
        if node.op_type == "Loop" and 0 < position < carried - 1:
            targets.append(body.inputs[position + 1])
    return targets


def _int(node: ir.Node, name: str, default: int) -> int:
    return node.attributes.get_int(name, default)
