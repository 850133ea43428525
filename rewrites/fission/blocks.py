"""A loop without a recurrence whose temporaries are much larger than its results runs in blocks of steps.

    ds = Scan(xs) body(x) => ReduceSum(Mul(Sub(Y, x), Sub(Y, x)))    # [T] results, but [T, N, D] temporaries at once
    ->    Scan over blocks of K steps, with the body for K steps at once inside

The last block is filled up by repeating the last row, whose results are cut off again. Where the sizes that decide about K are not
known, the model computes K from the sizes it meets.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.fission.before import Before
from rewrites.fission.block_rows import block_rows, fixed_rows, from_blocks, to_blocks
from rewrites.fission.stacks import Stacks
from rewrites.graph.context import Context
from rewrites.graph.dims import with_axes
from rewrites.graph.marks import BLOCKS
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import rank_of, static_dims
from rewrites.loops import ScanInput, ScanOutput, ScanView, make_scan
from rewrites.loops.own_results import give_own_nodes
from rewrites.ops.versions import shape_of
from rewrites.rule import Patch

__all__ = ["Blocks", "choose_blocks", "in_blocks"]

CACHE_BYTES = 1 << 20
_WHOLE_BYTES = 1 << 21
_FEW_STEPS = 12


@dataclass(frozen=True)
class Blocks:
    """How many steps to do at once.

    ``steps``: a number, or None where the model must find out: then one step takes ``unit`` bytes for each element of ``sources``
    (values from outside, and scan inputs, of which one step counts).
    """

    steps: int | None
    step_bytes: int
    sources: tuple[ir.Value, ...] = ()
    unit: int = 1


def choose_blocks(loop: ScanView, before: Before, sizes: StepSizes, opset: int) -> Blocks | NotApplicable | None:
    """Say how many steps to do at once: all (None), or so many that the temporaries stay in the processor's cache."""
    values = [value for node in before.nodes for value in node.outputs]
    largest = max([1, *map(sizes.step, values)])
    io = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
    budget = sizes.options.memory_budget
    blown_up = largest > 2 * max(map(sizes.step, io), default=1)
    sources = _open_sources(loop, before, sizes)
    known = sizes.steps_known and not sources
    over_budget = known and before.alive.most > budget
    if loop.states or not (blown_up or over_budget):
        return None
    if not sizes.options.target.loops and isinstance(loop.steps, int) and not over_budget:
        return None  # a Scan over blocks would not run there
    if _is_over_blocks(loop):
        return NotApplicable("SCAN-BLOCKS", "each step already works on a block of the original steps")
    if known:
        if not over_budget and largest * sizes.steps <= _WHOLE_BYTES:
            return None
        count = min(CACHE_BYTES // largest, budget // max(largest, -(-before.alive.most // sizes.steps)))
        if count < 2:
            detail = f"one step makes temporaries of about {largest} bytes, so doing several at once gains nothing"
            return NotApplicable("COST-LARGE-STEPS", detail)
        return Blocks(count, largest)
    if (isinstance(loop.steps, int) and loop.steps <= _FEW_STEPS) or opset < since.ALLOWZERO:
        return None
    if any(rank_of(value) is None for value in [*(scan.outer for scan in loop.scan_inputs), *io]):
        return None
    elements = sum(max(1, sizes.elements(value)) for value in sources)
    return Blocks(None, largest, tuple(sources), -(-largest // max(1, elements)))


def _is_over_blocks(loop: ScanView) -> bool:
    """Whether all that is scanned is cut into blocks right before the loop, and all that it gives joined right behind it."""
    makers = [scan.outer.producer() for scan in loop.scan_inputs]
    readers = [user for output in loop.scan_outputs if output.outer is not None for user, _ in output.outer.uses()]
    return all(_changes_rank(node, 1) for node in makers) and all(
        _changes_rank(node, -1) for node in readers if node.op_type != "Shape"
    )


def _changes_rank(node: ir.Node | None, by: int) -> bool:
    if node is None or node.op_type != "Reshape" or node.domain != "" or node.inputs[0] is None:
        return False
    before, after = rank_of(node.inputs[0]), rank_of(node.outputs[0])
    return before is not None and after == before + by


def _open_sources(loop: ScanView, before: Before, sizes: StepSizes) -> list[ir.Value]:
    """Return the values from outside, and the scan inputs, whose sizes decide about the temporaries and are not known."""
    outside = {value: None for node in before.nodes for value in node.inputs if value is not None}
    inner = {value for node in before.nodes for value in node.outputs}
    found = [value for value in outside if value not in inner and static_dims(value) is None]
    return [value for value in found if not sizes.hinted(value)]


def in_blocks(loop: ScanView, blocks: Blocks, ctx: Context) -> Patch | NotApplicable:
    """Make the patch that runs ``loop`` in blocks."""
    build, inside = ctx.builder(), ctx.builder()
    outside = Stacks(loop, build)
    steps = shape_of(build, loop.scan_inputs[0].outer, 0)
    if blocks.steps is not None and isinstance(loop.steps, int):
        rows = fixed_rows(build, loop.steps, blocks.steps)
    else:
        rows = block_rows(build, loop, steps, blocks.steps, blocks.sources, blocks.unit, CACHE_BYTES)
    scans, body_scans = [], []
    for scan in loop.scan_inputs:
        blocked = to_blocks(build, outside.ordered(scan.outer, scan.reverse), rows)
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
    results = [stacks.full(output.inner) for output in loop.scan_outputs]
    stand_ins = [_stand_in(output, ctx) for output in loop.scan_outputs]
    outside.build = tail = ctx.builder()
    joined = [
        outside.ordered(from_blocks(tail, stand_in, rows, steps), output.reverse)
        for output, stand_in in zip(loop.scan_outputs, stand_ins, strict=True)
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
        for stand_in, result in zip(stand_ins, node.outputs, strict=True):
            result.type, result.shape = stand_in.type, stand_in.shape
            replace_value(stand_in, result, ctx.names)
        tail.insert_after(loop.node)
        for output, result in zip(loop.scan_outputs, joined, strict=True):
            if output.outer is not None:
                replace_value(output.outer, result, ctx.names)
        remove_nodes([loop.node])
        return [node]

    size = "as many steps at a time as fit the cache" if rows.known_size is None else f"{rows.known_size} steps at a time"
    note = f"temporaries of about {blocks.step_bytes} bytes a step: {size}"
    return Patch(f"runs block by block, {size}", edit, (note,))


def _stand_in(output: ScanOutput, ctx: Context) -> ir.Value:
    shape = with_axes(output.inner.shape, 0, None, None)
    return ir.Value(name=ctx.names.fresh(f"{output.inner.name}_blocks"), type=output.inner.type, shape=shape)
