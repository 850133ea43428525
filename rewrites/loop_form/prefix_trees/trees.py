"""Finds prefix trees in a graph.

    a = Slice(x, even rows); b = Slice(x, odd rows); c = Add(a, b); ...    ->    y = all prefix sums of x

A tree is written for one number of steps. Exporters write it for ``associative_scan`` of torch and JAX; by hand it is written as a
doubling, ``x[d:] = op(x[:-d], x[d:])`` for d = 1, 2, 4, ..., or with a sweep up and a sweep down (Hillis and Steele, "Data parallel
algorithms", 1986; Blelloch, "Prefix sums and their applications", 1990).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.values import dim_of, rank_of, static_dims
from rewrites.loop_form.prefix_trees.proof import Proof
from rewrites.loop_form.prefix_trees.rows import RowReader, TreeRows
from rewrites.loop_form.prefix_trees.terms import Application, Leaf
from rewrites.ops.versions import DYNAMIC, slice_range, slice_spec, split_spec

__all__ = [
    "CUTTING",
    "LEAST_LEVELS",
    "LEAST_STEPS",
    "NOT_IN_TREES",
    "PrefixTree",
    "free_trees",
    "may_have_prefix_trees",
    "prefix_trees_in",
]

LEAST_STEPS = 8
LEAST_LEVELS = 3
_MOST_STEPS = 1 << 16
CUTTING = frozenset({"Pad", "Slice", "Split"})
NOT_IN_TREES = frozenset({"Attention", "Conv", "Einsum", "Gemm", "LayerNormalization", "MatMul", "Shape", "Softmax"})
"""Operators that end a search for trees before shapes are known."""


@dataclass(frozen=True)
class PrefixTree:
    """Nodes that compute all prefixes of an operator.

    Args:
        graph: The graph of the nodes.
        reader: Has the sources, and how to compute the terms.
        proof: Has the templates of the operator.
        roots: The tensors of prefixes, with the source whose prefixes they are.
        axis: The axis of the sources along which the steps lie.
        steps: The number of steps.
        backwards: True if the prefixes start at the last row.
    """

    graph: ir.Graph
    reader: RowReader
    proof: Proof
    roots: Mapping[ir.Value, int]
    axis: int
    steps: int
    backwards: bool

    @property
    def where(self) -> str:
        """Return the name of the tree in reports."""
        return f"main/{self.steps} steps of the tree of '{next(iter(self.roots)).name}'"

    @property
    def parts(self) -> list[int]:
        """Return the sources of all parts that the roots need."""
        return list(dict.fromkeys(part for source in self.roots.values() for part in self.proof.parts(source)))

    @property
    def states(self) -> list[int]:
        """Return the sources of the parts that pass from step to step."""
        states = list(dict.fromkeys(self.roots.values()))
        for source in states:
            template = self.proof.templates[source]
            operands = template.bind(template.term, self.proof.terms) or {}
            passed = dict.fromkeys(operand.source for operand in operands if operand.is_later == self.backwards)
            states += [other for other in passed if other not in states]
        return states

    def row_dims(self, source: int) -> list[int]:
        """Return the sizes of one row of the source with the index ``source``. An unknown size becomes 1."""
        shape = self.reader.sources[source].shape
        dims = [] if shape is None else shape.dims
        return [dim if isinstance(dim, int) else 1 for axis, dim in enumerate(dims) if axis != self.axis]

    def terms(self, source: int) -> list[int]:
        """Return the terms of the part ``source`` of the operator, operands first."""
        pending, terms = [self.proof.templates[source].term], set[int]()
        while pending:
            number = pending.pop()
            term = self.proof.terms.terms[number]
            if number not in terms and isinstance(term, Application):
                pending += term.operands
            terms.add(number)
        return sorted(terms)

    def nodes(self) -> set[ir.Node]:
        """Return the nodes that compute the roots from the sources."""
        return _nodes_behind(self.roots, self.reader)


def may_have_prefix_trees(graph: ir.Graph) -> bool:
    """Return True if results of three Slices, Pads or Splits, one after the other, are combined.

    Shapes need not be inferred yet. ``may_have_unrolled_steps`` finds trees of products, which read four parts of a tensor.
    """
    levels: dict[ir.Value, int] = {}
    for node in graph:
        if node.domain == "" and node.op_type not in NOT_IN_TREES:
            level = max((levels.get(value, 0) for value in node.inputs if value is not None), default=0) + (node.op_type in CUTTING)
            levels.update(dict.fromkeys(node.outputs, level))
            if level >= LEAST_LEVELS:
                return True
    return False


def prefix_trees_in(graph: ir.Graph, opset: int, fast_math: bool = False) -> Iterator[PrefixTree]:
    """Yield the prefix trees of ``graph``, but no part of another tree.

    A tree cuts its rows at least twice on each level, except on the last one. If the caller changes the model, it must not continue
    this iteration.

    ``fast_math``: True if 0 times a row is 0.
    """
    cuts: dict[tuple[int, int], set[ir.Value]] = {}
    cuts_along = Counter[int]()
    for node in graph:
        for axis in _cut_axes(node, opset):
            source = node.inputs[0]
            if source is not None and isinstance(size := dim_of(source, axis), int):
                cuts_along[axis] += 1
                cuts.setdefault((axis, size), set()).add(source)
    known = set[ir.Node]()
    for (axis, size), sources in sorted(cuts.items(), key=lambda item: -item[0][1]):
        if LEAST_STEPS <= size <= _MOST_STEPS and cuts_along[axis] >= 2 * (size - 1).bit_length() - 2:
            reader = _read(graph, sources, axis, size, RowReader(opset, fast_math))
            for tree in _trees(graph, reader, axis, size) if reader.applied else ():
                nodes = tree.nodes()
                if nodes.isdisjoint(known):
                    yield tree
                known |= nodes


def free_trees(graph: ir.Graph, opset: int) -> list[ir.Value]:
    """Return the tensors of unknown size whose even and odd rows are combined, and then combined again.

    This is the start of the tree that torch and JAX write for ``associative_scan``.
    """
    halves: dict[tuple[ir.Value, int], set[int]] = {}
    combined: dict[ir.Value, ir.Value] = {}
    for node in graph:
        source = node.inputs[0] if node.op_type == "Slice" and node.domain == "" else None
        spec = DYNAMIC if source is None else slice_spec(node, opset, rank_of(source))
        if source is None or spec is DYNAMIC or spec.steps != (2,) or spec.starts not in ((0,), (1,)):
            continue
        if not isinstance(dim_of(source, spec.axes[0]), int):
            halves.setdefault((source, spec.axes[0]), set()).update(spec.starts)
            combined.update({value: source for user, _ in node.outputs[0].uses() for value in user.outputs})
    pairs = {source for (source, _), starts in halves.items() if starts == {0, 1}}
    return list(
        dict.fromkeys(combined[value] for value in pairs if combined.get(value) in pairs and combined[value] not in combined)
    )


def _cut_axes(node: ir.Node, opset: int) -> Iterable[int]:
    """Return the axes along which ``node`` cuts parts out of its first input, or pads it."""
    rank = rank_of(node.inputs[0]) if node.op_type in CUTTING and node.domain == "" and node.inputs[0] is not None else None
    if rank is None or node.inputs[0] is None:
        return ()
    if node.op_type == "Split":
        return (split_spec(node, opset, rank).axis,)
    if node.op_type == "Pad":
        before, after = static_dims(node.inputs[0]), static_dims(node.outputs[0])
        return () if before is None or after is None else [axis for axis in range(rank) if before[axis] != after[axis]]
    spec = slice_spec(node, opset, rank)
    if spec is DYNAMIC:
        return ()
    sizes = {axis: dim_of(node.inputs[0], axis) for axis in spec.axes}
    cuts = zip(spec.starts, spec.ends, spec.axes, spec.steps, strict=True)
    return [
        a for start, end, a, step in cuts if isinstance(n := sizes[a], int) and step and len(slice_range(start, end, step, n)) != n
    ]


def _read(graph: ir.Graph, sources: Collection[ir.Value], axis: int, size: int, reader: RowReader) -> RowReader:
    """Read all nodes that depend on ``sources``.

    If the rows of a source are known from other sources, it is not a source itself.
    """
    for value in [*graph.inputs, *graph.initializers.values()]:
        if value in sources:
            reader.add_source(value, axis, size)
    for node in graph:
        is_known = any(value in reader.rows for value in node.inputs if value is not None) and reader.read(node)
        for value in () if is_known else node.outputs:
            if value in sources:
                reader.add_source(value, axis, size)
    return reader


def _trees(graph: ir.Graph, reader: RowReader, axis: int, size: int) -> Iterator[PrefixTree]:
    """Yield the trees over the sources of ``reader``, those of one operator together."""
    for backwards in (False, True):
        proof, roots = Proof(reader.terms), dict[ir.Value, int]()
        for value, rows in reader.rows.items():
            is_root = rows.positions == (axis,) and rows.ids.size == size and not rows.is_source
            source = _source_of_first(rows, reader, backwards) if is_root else None
            if source is not None and proof.covers(source, rows.ids.reshape(-1).tolist(), backwards):
                roots[value] = source
        roots = _read_outside(roots, reader)
        while roots:
            parts = set(proof.parts(next(iter(roots.values()))))
            mine = {value: source for value, source in roots.items() if parts & set(proof.parts(source))}
            yield PrefixTree(graph, reader, proof, mine, axis, size, backwards)
            roots = {value: source for value, source in roots.items() if value not in mine}


def _read_outside(roots: Mapping[ir.Value, int], reader: RowReader) -> dict[ir.Value, int]:
    """Return the roots that are outputs of the graph, or that are read by a node on which no root depends."""
    nodes = _nodes_behind(roots, reader)
    return {
        value: source
        for value, source in roots.items()
        if value.is_graph_output() or any(user not in nodes for user, _ in value.uses())
    }


def _nodes_behind(roots: Iterable[ir.Value], reader: RowReader) -> set[ir.Node]:
    """Return the nodes that compute ``roots`` from the sources."""
    pending, nodes = list(roots), set[ir.Node]()
    while pending:
        value = pending.pop()
        rows, node = reader.rows.get(value), value.producer()
        if rows is not None and not rows.is_source and node is not None and node not in nodes:
            nodes.add(node)
            pending += (operand for operand in node.inputs if operand is not None)
    return nodes


def _source_of_first(rows: TreeRows, reader: RowReader, backwards: bool) -> int | None:
    """Return the source that contains the first of ``rows``, or the last if ``backwards``.

    Return None if no source contains it.
    """
    first = reader.terms.terms[rows.ids.flat[-1 if backwards else 0]]
    return first.source if isinstance(first, Leaf) else None
