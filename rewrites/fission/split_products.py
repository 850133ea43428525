"""Splits a product of concatenated parts into a sum of products, some of which can leave the loop.

    body(h, x) => h2 = f(MatMul(Concat(g(h), x), W))    ->    body(h, x) => h2 = f(MatMul(g(h), W[:n]) + MatMul(x, W[n:]))

A product of parts that do not depend on states, such as MatMul(x, W[n:]), can then run before the loop for all steps at once. Sums
are added in another order. Conditions:

* The product is a MatMul or Gemm of floats by a matrix from outside the loop.
* The parts have known sizes, and are joined along the axis over which the product sums.
* The parts that do not depend on states have at least ``_MIN_ELEMENTS`` elements together along this axis.
* Every operator that computes these parts has a batching rule.
* The stack of the product fits in the memory budget.
* If the other parts still need a Concat, each step gets one more operator. Then at least ``_MIN_MATRIX_ELEMENTS`` elements of the
  matrix must belong to the products that leave.
* The loop is a Scan of opset 9 or later.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.dependence import nodes_computing, not_repeatable, varying_values
from rewrites.base import since
from rewrites.batching import has_rule
from rewrites.fission.stacks import stacking_obstacle
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, dim_of, producer_of, rank_of
from rewrites.loops import Loop, LoopView, ScanView, captured_values
from rewrites.ops.versions import axis_of, concat, slice_axis
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_MIN_ELEMENTS, _MIN_MATRIX_ELEMENTS = 8, 4096


@dataclass(frozen=True)
class _Run:
    """Consecutive parts of a Concat. All of them depend on states (``needs_state``), or none does.

    The parts extend from index ``start`` to index ``stop`` along the axis of the Concat.
    """

    parts: tuple[ir.Value, ...]
    start: int
    stop: int
    needs_state: bool


@dataclass(frozen=True)
class _ConcatProduct:
    """A product of concatenated parts by a matrix.

    Args:
        node: The MatMul or Gemm.
        concat: The Concat of the parts.
        matrix: The matrix.
        axis: The axis of the matrix over which the product sums.
        runs: The runs of parts, in order. Runs that depend on states alternate with runs that do not.
    """

    node: ir.Node
    concat: ir.Node
    matrix: ir.Value
    axis: int
    runs: tuple[_Run, ...]


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that splits the first suitable product of concatenated parts."""
    if isinstance(loop, LoopView) or not loop.states or stacking_obstacle(loop, ctx) is not None:
        return NOTHING_HERE
    state_values = varying_values(loop.body, [state.inner for state in loop.states])
    product = next(filter(None, (_match_product(node, loop, state_values, ctx) for node in loop.body)), None)
    if product is None:
        return NOTHING_HERE

    def edit() -> list[ir.Node]:
        outside, inside = ctx.builder(), ctx.builder()
        first, *rest = sorted(product.runs, key=lambda run: not run.needs_state)
        total = _emit_part_product(product, first, product.node.inputs[2:], outside, inside)
        for run in rest:
            total = inside.op("Add", total, _emit_part_product(product, run, (), outside, inside))
        outside.insert_before(loop.node)
        inside.insert_before(product.node)
        replace_value(product.node.outputs[0], total, ctx.names)
        remove_nodes([product.node, *([] if len(product.concat.outputs[0].uses()) > 1 else [product.concat])])
        return [loop.node]

    return Patch(f"split the product '{product.node.outputs[0].name}' of joined parts into {len(product.runs)}", edit)


def _match_product(node: ir.Node, loop: ScanView, state_values: set[ir.Value], ctx: Context) -> _ConcatProduct | None:
    """Return ``node`` as a _ConcatProduct if some of its parts can leave the loop, else None.

    ``state_values``: the values of the body that depend on states.
    """
    if node.op_type not in ("MatMul", "Gemm") or node.domain != "" or node.outputs[0].dtype not in _FLOATS:
        return None
    operand, matrix = node.inputs[:2]
    joined = producer_of(operand, "Concat")
    if joined is None or joined.graph is not loop.body or matrix is None:
        return None
    rank, depth = rank_of(joined.outputs[0]), rank_of(matrix)
    if rank is None or depth is None or min(rank, depth) < 2 or axis_of(joined, 1, rank) != rank - 1:
        return None
    if const_array(matrix) is None and matrix not in captured_values(loop.body):
        return None
    axis = depth - 2
    if node.op_type == "Gemm":
        if node.attributes.get_int("transA", 0) or ctx.opset < since.GEMM_WITHOUT_C:
            return None
        axis = 1 if node.attributes.get_int("transB", 0) else 0
    runs = tuple(_runs(joined, state_values))
    free_runs = [run for run in runs if not run.needs_state]
    if len(runs) < 2 or not free_runs or len(free_runs) == len(runs):
        return None
    free_size, state_runs = sum(run.stop - run.start for run in free_runs), [run for run in runs if run.needs_state]
    width = dim_of(node.outputs[0], -1)
    if free_size < _MIN_ELEMENTS or (
        sum(len(run.parts) for run in state_runs) > 1 and (not isinstance(width, int) or free_size * width < _MIN_MATRIX_ELEMENTS)
    ):
        return None
    return _ConcatProduct(node, joined, matrix, axis, runs) if _can_leave(node, free_runs, loop, ctx) else None


def _runs(joined: ir.Node, state_values: set[ir.Value]) -> Iterator[_Run]:
    """Yield the runs of parts of the Concat ``joined``; none if a part has an unknown size."""
    parts = [value for value in joined.inputs if value is not None]
    sizes = [dim_of(value, -1) for value in parts]
    ends = [0, *itertools.accumulate(size if isinstance(size, int) else 0 for size in sizes)]
    if not all(isinstance(size, int) for size in sizes):
        return
    for needs_state, group in itertools.groupby(range(len(parts)), lambda index: parts[index] in state_values):
        indices = list(group)
        yield _Run(tuple(parts[index] for index in indices), ends[indices[0]], ends[indices[-1] + 1], needs_state)


def _can_leave(node: ir.Node, free_runs: Sequence[_Run], loop: ScanView, ctx: Context) -> bool:
    """Return True if the products of ``free_runs`` can run before the loop, for all steps at once.

    ``node``: the MatMul or Gemm of all parts. ``free_runs``: the runs of parts that do not depend on states.
    """
    sizes = StepSizes.of(loop, ctx)
    nodes = nodes_computing(loop.body, [part for run in free_runs for part in run.parts])
    results = [value for node_before in nodes for value in node_before.outputs]
    return (
        all(has_rule(node_before) and not_repeatable(node_before) is None for node_before in nodes)
        and all(sizes.stack_obstacle(value) is None for value in [*results, node.outputs[0]])
        and sizes.step_bytes(node.outputs[0]) * sizes.steps <= sizes.options.memory_budget
    )


def _emit_part_product(
    product: _ConcatProduct, run: _Run, gemm_addend: Sequence[ir.Value | None], outside: Builder, inside: Builder
) -> ir.Value:
    """Emit the product of the parts of ``run`` by the rows of the matrix that belong to them.

    Args:
        product: The product of all parts.
        run: The parts to multiply.
        gemm_addend: The third operand of a Gemm, which is added to the product. Empty if there is none.
        outside: Collects the nodes before the loop.
        inside: Collects the nodes in the body.
    """
    array = const_array(product.matrix)
    if array is None:
        rows = slice_axis(outside, product.matrix, product.axis, run.start, run.stop)
    else:
        rows = outside.const(np.take(array, range(run.start, run.stop), product.axis))
    joined = concat(inside, run.parts, (rank_of(product.concat.outputs[0]) or 1) - 1)
    return inside.like(product.node, [joined, rows, *gemm_addend])[0]


RULE = Rule("split-products", "fission", "loop", check)
