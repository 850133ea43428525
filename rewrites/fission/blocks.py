"""Runs a loop without recurrence in blocks of steps if temporaries are much larger than its results.

    ds = Scan(xs) body(x) => ReduceSum(Mul(Sub(Y, x), Sub(Y, x)))    # for all T steps: result [T], temporaries [T, N, D]
    ->    Scan over blocks of K steps. Its body runs each operator for K steps at once.

A stack [T, ...] is cut into blocks [count, K, ...]. Copies of the last row fill up the last block, and the results of these copies
are removed at the end. If the sizes that determine K are unknown, the model computes K.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.before import MovedBefore
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes
from rewrites.graph.marks import BLOCKS
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import rank_of, static_dims
from rewrites.loops import ScanInput, ScanOutput, ScanView, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import concat, gather, shape_of, slice_axis, unsqueeze
from rewrites.rule import Patch

__all__ = ["Blocks", "blocks_patch", "choose_blocks"]

_CACHE_BYTES = 1 << 20
_WHOLE_BYTES = 1 << 21
_FEW_STEPS = 12
_END = 2**63 - 1


@dataclass(frozen=True)
class Blocks:
    """The number of ``steps`` in a block, and the bytes of the largest temporary of one step.

    If ``steps`` is None, the model computes the number. It assumes that one step takes ``bytes_per_element`` bytes for each element
    of ``sources``, which are values from outside the loop and rows of scan inputs.
    """

    steps: int | None
    step_bytes: int
    sources: tuple[ir.Value, ...] = ()
    bytes_per_element: int = 1


@dataclass(frozen=True)
class BlockRows:
    """The ``size`` of a block in steps and the ``count`` of blocks, as int64 tensors of one element.

    ``padding``: the indices of the rows that fill up the last block; None if the last block is full anyway.
    """

    size: ir.Value
    count: ir.Value
    padding: ir.Value | None
    known_size: int | None = None
    known_steps: int | None = None


def choose_blocks(loop: ScanView, before: MovedBefore, sizes: StepSizes, opset: int) -> Blocks | NotApplicable | None:
    """Return the block size to use, a reason against blocks, or None to run all steps at once."""
    values = [value for node in before.nodes for value in node.outputs]
    largest = max([1, *map(sizes.step_bytes, values)])
    io = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
    budget = sizes.options.memory_budget
    blown_up = largest > 2 * max(map(sizes.step_bytes, io), default=1)
    sources = _values_of_unknown_size(loop, before, sizes)
    known = sizes.steps_known and not sources
    over_budget = known and before.liveness.peak > budget
    if loop.states or not (blown_up or over_budget):
        return None
    if not sizes.options.target.loops and isinstance(loop.steps, int) and not over_budget:
        return None  # the target runs no loops, so no Scan over blocks
    if _is_over_blocks(loop):
        return NotApplicable("SCAN-BLOCKS", "each step already works on a block of the original steps")
    if known:
        if not over_budget and largest * sizes.steps <= _WHOLE_BYTES:
            return None
        count = min(_CACHE_BYTES // largest, budget // max(largest, -(-before.liveness.peak // sizes.steps)))
        if count < 2:
            detail = f"one step needs temporaries of about {largest} bytes, so several steps at once gain nothing"
            return NotApplicable("COST-LARGE-STEPS", detail)
        return Blocks(count, largest)
    if (isinstance(loop.steps, int) and loop.steps <= _FEW_STEPS) or opset < since.ALLOWZERO:
        return None
    if any(rank_of(value) is None for value in [*(scan.outer for scan in loop.scan_inputs), *io]):
        return None
    elements = sum(max(1, sizes.step_elements(value)) for value in sources)
    return Blocks(None, largest, tuple(sources), -(-largest // max(1, elements)))


def _values_of_unknown_size(loop: ScanView, before: MovedBefore, sizes: StepSizes) -> list[ir.Value]:
    """Return the values of unknown size that the body reads: outer values and rows of scan inputs."""
    operands = {value: None for node in before.nodes for value in node.inputs if value is not None}
    inner = {value for node in before.nodes for value in node.outputs}
    return [value for value in operands if value not in inner and static_dims(value) is None and not sizes.has_known_size(value)]


def _is_over_blocks(loop: ScanView) -> bool:
    """Return True if ``loop`` already runs over blocks: Reshapes cut its inputs and join its results."""
    users = [user for output in loop.scan_outputs if output.outer is not None for user, _ in output.outer.uses()]
    cut = all(_changes_rank(scan.outer.producer(), 1) for scan in loop.scan_inputs)
    return cut and all(_changes_rank(user, -1) for user in users if user.op_type != "Shape")


def _changes_rank(node: ir.Node | None, increase: int) -> bool:
    if node is None or node.op_type != "Reshape" or node.domain != "" or node.inputs[0] is None:
        return False
    before, after = rank_of(node.inputs[0]), rank_of(node.outputs[0])
    return before is not None and after == before + increase


def blocks_patch(loop: ScanView, blocks: Blocks, ctx: Context) -> Patch | NotApplicable:
    """Return a patch that runs ``loop`` in blocks, or a reason if an operator has no batching rule."""
    build, inside = ctx.builder(), ctx.builder()
    outside = Stacks(loop, build)
    steps = shape_of(build, loop.scan_inputs[0].outer, 0)
    if blocks.steps is not None and isinstance(loop.steps, int):
        rows = _fixed_rows(build, loop.steps, blocks.steps)
    else:
        rows = _computed_rows(build, loop, steps, blocks)
    scans, body_scans = [], []
    for scan in loop.scan_inputs:
        blocked = _to_blocks(build, outside.ordered(scan.outer, scan.reverse), rows)
        shape = with_axes(scan.inner.shape, 0, rows.known_size)
        value = ir.Value(name=ctx.names.fresh(f"{scan.inner.name}_block"), type=scan.inner.type, shape=shape)
        scans.append(ScanInput(blocked, value))
        body_scans.append(ScanInput(value, scan.inner))
    stacks = Stacks(ScanView(loop.node, loop.body, (), tuple(body_scans), loop.scan_outputs, False, None), inside)
    for node in loop.body:
        refusal = stacks.add(node)
        if refusal is not None:
            build.discard()
            inside.discard()
            return refusal
    results = [stacks.stack_of(output.inner) for output in loop.scan_outputs]
    block_results = [_stack_value(output, ctx) for output in loop.scan_outputs]
    outside.build = build_after = ctx.builder()
    joined = [
        outside.ordered(_from_blocks(build_after, block_result, rows, steps), output.reverse)
        for output, block_result in zip(loop.scan_outputs, block_results, strict=True)
    ]

    def edit() -> list[ir.Node]:
        body = ir.Graph([], [], nodes=inside.nodes, name=ctx.names.fresh("block"))
        inside.nodes = []
        node = make_scan(ctx.names, body, [], scans, [ScanOutput(result, None) for result in results], loop.node.name or "scan")
        give_own_nodes(body, ctx.names)
        BLOCKS.put(node, True)
        assert loop.node.graph is not None
        build.insert_before(loop.node)
        loop.node.graph.insert_before(loop.node, node)
        for block_result, result in zip(block_results, node.outputs, strict=True):
            result.type, result.shape = block_result.type, block_result.shape
            replace_value(block_result, result, ctx.names)
        build_after.insert_after(loop.node)
        for output, result in zip(loop.scan_outputs, joined, strict=True):
            if output.outer is not None:
                replace_value(output.outer, result, ctx.names)
        remove_nodes([loop.node])
        return [node]

    size = "as many steps at a time as fit the cache" if rows.known_size is None else f"{rows.known_size} steps at a time"
    note = f"temporaries of about {blocks.step_bytes} bytes per step: {size}"
    return Patch(f"runs block by block, {size}", edit, (note,))


def _stack_value(output: ScanOutput, ctx: Context) -> ir.Value:
    shape = with_axes(output.inner.shape, 0, None, None)
    return ir.Value(name=ctx.names.fresh(f"{output.inner.name}_blocks"), type=output.inner.type, shape=shape)


def _fixed_rows(build: Builder, steps: int, max_size: int) -> BlockRows:
    """Cut ``steps`` rows into as few equal blocks as possible, of at most ``max_size`` rows each."""
    count = -(-steps // max_size)
    size = -(-steps // count)
    missing = count * size - steps
    padding = build.const([steps - 1] * missing) if missing else None
    return BlockRows(build.const([size]), build.const([count]), padding, size, steps)


def _computed_rows(build: Builder, loop: ScanView, steps: ir.Value, blocks: Blocks) -> BlockRows:
    """Emit nodes that compute the block size: ``blocks.steps``, or as many steps as fit in the cache."""
    one = build.const([1])
    if blocks.steps is not None:
        wanted = build.const([blocks.steps])
    else:
        divisor = _maximum(build, steps, one)
        total, *rest = [_elements_per_step(build, value, loop, divisor) for value in blocks.sources] or [one]
        for elements in rest:
            total = build.op("Add", total, elements)
        step_bytes = _maximum(build, build.op("Mul", total, build.const([blocks.bytes_per_element])), one)
        wanted = _maximum(build, build.op("Div", build.const([_CACHE_BYTES]), step_bytes), one)
    fitting = build.op("Where", build.op("Less", wanted, steps), wanted, steps)  # Min accepts integers only from opset 12 on
    wanted = _maximum(build, fitting, one)
    count = _maximum(build, _divide_rounding_up(build, steps, wanted, one), one)
    size = _divide_rounding_up(build, steps, count, one)
    missing = build.op("Sub", build.op("Mul", count, size), steps)
    return BlockRows(size, count, build.op("Expand", build.op("Sub", steps, one), missing))


def _maximum(build: Builder, left: ir.Value, right: ir.Value) -> ir.Value:
    return build.op("Where", build.op("Less", left, right), right, left)


def _elements_per_step(build: Builder, value: ir.Value, loop: ScanView, steps: ir.Value) -> ir.Value:
    scan = next((scan for scan in loop.scan_inputs if scan.inner is value), None)
    count = unsqueeze(build, build.op("Size", value if scan is None else scan.outer), [0])
    return count if scan is None else build.op("Div", count, steps)


def _divide_rounding_up(build: Builder, dividend: ir.Value, divisor: ir.Value, one: ir.Value) -> ir.Value:
    return build.op("Div", build.op("Sub", build.op("Add", dividend, divisor), one), divisor)


def _to_blocks(build: Builder, value: ir.Value, rows: BlockRows) -> ir.Value:
    """Reshape a stack [T, ...] to blocks [count, size, ...]."""
    rest = _sizes_from(build, value, 1)
    if rows.padding is not None:
        value = concat(build, [value, gather(build, value, rows.padding, 0)], 0)
    return _reshape(build, value, [rows.count, rows.size, *rest])


def _sizes_from(build: Builder, value: ir.Value, axis: int) -> list[ir.Value]:
    """Return the sizes of ``value`` from axis number ``axis`` to the last axis."""
    rank = rank_of(value)
    if rank is None:
        return [slice_axis(build, build.op("Shape", value), 0, axis, _END)]
    return [shape_of(build, value, position) for position in range(axis, rank)]


def _reshape(build: Builder, value: ir.Value, dims: Sequence[ir.Value]) -> ir.Value:
    """Reshape ``value`` to ``dims``, in which 0 means size 0. (With a size 0, a -1 would be ambiguous.)"""
    return build.op("Reshape", value, concat(build, list(dims), 0), allowzero=1 if build.opset >= since.ALLOWZERO else None)


def _from_blocks(build: Builder, value: ir.Value, rows: BlockRows, steps: ir.Value) -> ir.Value:
    """Reshape blocks [count, size, ...] back to a stack [T, ...], without the padding."""
    rest = _sizes_from(build, value, 2)
    flat = _reshape(build, value, [build.op("Mul", rows.count, rows.size), *rest])
    if rows.known_steps is not None:
        return flat if rows.padding is None else slice_axis(build, flat, 0, 0, rows.known_steps)
    return build.op("Slice", flat, build.const([0]), steps, build.const([0]))
