"""A tree that computes all prefixes of an associative operator becomes a Scan.

    a = Add(x[:-1:2], x[1::2]); ...; ys = Concat(...)    ->    ys = Scan(0, x) body(s, x_t) => (s2 = s + x_t, s2)

``prefix_trees`` finds the trees, reads the operator from the first two steps, and proves that each row is a prefix. The rule then
tests that the operator is associative. The sum in the loop has another order of float sums than the tree.

The first state is the first row, and the Scan then starts at the second step. If all first states of the operator are neutral, such
as 0 for a sum, the Scan starts at the first step. Conditions:

* Outside the tree, only its prefixes are read. Otherwise the tree would stay, beside the Scan.
* A state has the type and the shape of a row of its source.

If the Scan brings no gain, ``driver/rolling.py`` lets the tree stay.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import unread_nodes, varying_values
from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import ROLLED_UP
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import static_dims
from rewrites.loop_form.prefix_trees.operator import emit_operator, has_threshold, is_associative
from rewrites.loop_form.prefix_trees.terms import Application, Invariant, Leaf
from rewrites.loop_form.prefix_trees.trees import PrefixTree
from rewrites.loops import ScanInput, ScanOutput, State, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import concat, slice_axis, squeeze
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_END = 2**63 - 1


def check(tree: PrefixTree, ctx: Context) -> Patch | NotApplicable:
    """Return a patch, or the reason to keep the tree."""
    if ctx.opset < since.SCAN:
        return NOTHING_HERE
    if _depends_on_prefixes(tree):
        return NotApplicable("TREE-ORDER", "one of its sources depends on its prefixes")
    still_read = _still_read(tree)
    if still_read is not None:
        return NotApplicable("TREE-READ", f"'{still_read.outputs[0].name}', a part of the tree, is read outside it")
    if not _keeps_rows(tree, ctx):
        return NOTHING_HERE
    if has_threshold(tree):
        return NotApplicable("TREE-OPERATOR", "its operator may have a threshold, such as a Clip, so it may not be associative")
    if not is_associative(tree, ctx):
        return NotApplicable("TREE-OPERATOR", "its operator is not associative at random rows, or cannot be computed in float64")

    def edit() -> list[ir.Node]:
        scan = _Rolling(tree, ctx).roll_up()
        ROLLED_UP.put(scan, True)
        return [scan]

    return Patch(f"rolled a tree over {tree.steps} steps up into a Scan", edit)


def _depends_on_prefixes(tree: PrefixTree) -> bool:
    """Return True if the Scan would read a value that depends on a result of the Scan."""
    terms = [tree.proof.terms.terms[number] for source in tree.parts for number in tree.terms(source)]
    invariants = [term.value for term in terms if isinstance(term, Invariant)]
    return not varying_values(tree.graph, tree.roots).isdisjoint([*(tree.reader.sources[part] for part in tree.parts), *invariants])


def _still_read(tree: PrefixTree) -> ir.Node | None:
    """Return a computing node of ``tree`` whose result is also read outside the tree, if any."""
    nodes, unread = tree.nodes(), set(unread_nodes(tree.graph))
    for node in reversed([node for node in tree.graph if node in nodes]):
        values = [value for value in node.outputs if value not in tree.roots]
        if not any(value.is_graph_output() or any(user not in unread for user, _ in value.uses()) for value in values):
            unread.add(node)
        elif node in tree.reader.applied:
            return node
    return None


def _keeps_rows(tree: PrefixTree, ctx: Context) -> bool:
    """Return True if each state has the type and the shape of a row of its source."""
    inner = ctx.builder()
    rows = {source: _row(tree, source, ctx) for source in tree.parts}
    results = emit_operator(tree, tree.parts, inner, rows, rows)
    equal = all(
        result.dtype == rows[source].dtype and result.shape is not None and result.shape == rows[source].shape
        for source, result in results.items()
    )
    inner.discard()
    return equal


def _row(tree: PrefixTree, source: int, ctx: Context) -> ir.Value:
    """Return a new value for one row of the source with the index ``source``."""
    like = tree.reader.sources[source]
    dims = [] if like.shape is None else [dim for axis, dim in enumerate(like.shape.dims) if axis != tree.axis]
    return ir.Value(name=ctx.names.fresh(like.name or "row"), type=like.type, shape=ir.Shape(dims))


class _Rolling:
    """Builds the Scan. ``outer`` collects the nodes around it."""

    def __init__(self, tree: PrefixTree, ctx: Context) -> None:
        self.tree, self.ctx, self.outer = tree, ctx, ctx.builder()
        self.neutral = _neutral_row(tree)

    def roll_up(self) -> ir.Node:
        """Replace the tree by a Scan, and return the Scan."""
        tree, ctx, names = self.tree, self.ctx, self.ctx.names
        backwards, axis, inner = tree.backwards, tree.axis, ctx.builder()
        states, rows = {s: _row(tree, s, ctx) for s in tree.states}, {s: _row(tree, s, ctx) for s in tree.parts}
        before, after = (rows, states) if backwards else (states, rows)
        nexts = emit_operator(tree, states, inner, {**rows, **before}, {**rows, **after}, self._without_position_axes)
        body = ir.Graph([], [], nodes=inner.nodes, name=names.fresh("step"))
        inner.nodes = []
        used = [source for source in rows if rows[source].uses()]
        scan = make_scan(
            names,
            body,
            [State(self._initial(source), state, nexts[source], None) for source, state in states.items()],
            [ScanInput(self._steps(source), rows[source], axis, backwards) for source in used],
            [ScanOutput(nexts[source], None, axis, backwards) for source in states],
            "prefixes",
        )
        give_own_nodes(body, names)
        graph, anchor = tree.graph, next(iter(tree.roots)).producer()
        assert anchor is not None
        self.outer.insert_before(anchor)
        graph.insert_before(anchor, scan)
        b = ctx.builder()
        stacks = dict(zip(states, scan.outputs[len(states) :], strict=True))
        for source, stack in stacks.items():
            shape = tree.reader.sources[source].shape
            dims = [] if shape is None else list(shape.dims)
            dims[axis] = tree.steps - (self.neutral is None)
            stack.shape = ir.Shape(dims)
        joined = {source: self._with_first(b, source, stacks[source]) for source in dict.fromkeys(tree.roots.values())}
        b.insert_after(scan)
        nodes = tree.nodes()
        for root, source in tree.roots.items():
            replace_value(root, joined[source], names)
        for node in reversed([node for node in graph if node in nodes]):
            if not any(value.uses() or value.is_graph_output() for value in node.outputs):
                remove_nodes([node])
        graph.sort()
        return scan

    def _initial(self, source: int) -> ir.Value:
        if self.neutral is not None:
            return self.outer.const(self.neutral)
        return squeeze(self.outer, self._first(self.outer, source), [self.tree.axis])

    def _first(self, b: Builder, source: int) -> ir.Value:
        """Return the first step of the source, with the axis of the steps."""
        start = self.tree.steps - 1 if self.tree.backwards else 0
        return slice_axis(b, self.tree.reader.sources[source], self.tree.axis, start, start + 1)

    def _steps(self, source: int) -> ir.Value:
        """Return the steps of the source that the Scan reads."""
        rows = self.tree.reader.sources[source]
        if self.neutral is not None:
            return rows
        start, end = (0, self.tree.steps - 1) if self.tree.backwards else (1, _END)
        return slice_axis(self.outer, rows, self.tree.axis, start, end)

    def _with_first(self, b: Builder, source: int, stack: ir.Value) -> ir.Value:
        if self.neutral is not None:
            return stack
        first = self._first(b, source)
        return concat(b, [stack, first] if self.tree.backwards else [first, stack], self.tree.axis)

    def _without_position_axes(self, value: ir.Value | None, from_right: Sequence[int]) -> ir.Value | None:
        """Return an operand from outside the tree without the axes along which rows lie.

        Its size along these axes is 1.
        """
        rank = 0 if value is None or value.shape is None else len(value.shape)
        axes = [rank - axis for axis in from_right if axis <= rank]
        return squeeze(self.outer, value, axes) if value is not None and axes else value


def _neutral_row(tree: PrefixTree) -> np.ndarray | None:
    """Return the neutral row of the operator if it is one node that has a neutral row, else None."""
    states, terms = tree.states, tree.proof.terms.terms
    source, term = tree.reader.sources[states[0]], terms[tree.proof.templates[states[0]].term]
    dims, kind = static_dims(source), source.dtype
    if len(states) > 1 or not isinstance(term, Application) or dims is None or kind is None or kind not in _NUMPY_TYPES:
        return None
    if len(term.operands) != 2 or not all(isinstance(terms[operand], Leaf) for operand in term.operands):
        return None
    dtype = np.dtype(kind.numpy())
    lowest, highest = (-np.inf, np.inf) if dtype.kind == "f" else (0, 1) if dtype.kind == "b" else (kind.min, kind.max)
    neutral = {"Add": 0, "Mul": 1, "Max": lowest, "Min": highest, "Or": 0, "And": 1}
    number = neutral.get(tree.reader.emissions[term.key].node.op_type)
    row = [size for axis, size in enumerate(dims) if axis != tree.axis]
    return None if number is None else np.full(row, number, dtype)


_NUMPY_TYPES = frozenset(
    getattr(ir.DataType, name)
    for name in ("FLOAT", "DOUBLE", "FLOAT16", "BOOL", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
)

RULE = Rule("roll-up-trees", "loop_form", "prefix tree", check)
