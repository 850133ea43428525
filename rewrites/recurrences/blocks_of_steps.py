"""Run a loop in blocks of steps if a rule needs the number of steps and it is unknown.

    Scan(s0, xs)    ->    If (there are at least ``length`` steps)
                              s1, ys = Scan(s0, xs[:n] as blocks) of Scan(s, block)        # n: a multiple of ``length``
                              If (steps remain) then the Scan on s1 and xs[n:], else s1
                          else the original Scan

Other rules then replace the Scan over one block. If they only do so for small states, a nested If checks unknown sizes of states.
All loops keep their directions. For inputs scanned backwards, the blocks cover the last rows, and the first rows remain.

The loop is changed if a rule needs the number of steps, or if the loop has several states. Rules must be able to replace the whole
loop over one block, but not by a native cell. The target must run Scan and If, the opset must be at least 14, and the loop must not
run as a loop plan.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base import since
from rewrites.fission.separate import copy_with_states
from rewrites.graph.branches import say_has_steps
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context, RuleInUse
from rewrites.graph.dims import with_axes, without_axis
from rewrites.graph.marks import ASSUMED_SIZE, ONE_BLOCK
from rewrites.graph.values import static_dims
from rewrites.loops import Loop, ScanInput, ScanOutput, ScanView, State, make_scan
from rewrites.recurrences.closed_form import plain_scan, plan_is_faster
from rewrites.recurrences.fallback import WrittenForm, guard_with_fallback, sizes_at_most, tried_whole, write_fallback
from rewrites.recurrences.results import is_used
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.step_counts import emit_step_count
from rewrites.scans.blocks import reshape_first_axes

__all__ = ["RULE", "check"]

_END = 2**63 - 1
_UNKNOWN_STEPS_CODES = frozenset({"CUMULATIVE-STEPS", "LINEAR-STEPS"})
_ONE_STATE_RULE = "cumulative"
"""The rule that replaces one state at a time."""
_REPLACING_PHASES = ("recurrence", "fission")
_MAX_PATCHES = 4
"""The number of patches to try for each state."""
_LENGTHS = (16, 32, 64, 128, 256, 512)
_DEFAULT_LENGTH = 128
_ASSUMED_DIMS = (256, 64, 16, 4, 1)
"""The limits to try for unknown sizes."""
_BLOCK_NS = 40_000
"""The overhead of one block in ns, about as much as a block of 64 steps saves."""


@dataclass(frozen=True)
class _StepCut:
    """A cut into blocks of ``length`` steps. ``assumed``: the value assumed for unknown sizes, if any."""

    length: int
    assumed: int | None

    def widest(self, loop: ScanView, ctx: Context) -> int | None:
        """Return the largest number of elements that a state may have in a step; None if there is no limit."""
        if self.assumed is None:
            return None
        options = replace(ctx.options, assumed_dim=self.assumed)
        return max(StepSizes.of(loop, replace(ctx, options=options)).step_elements(state.inner) for state in loop.states)


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return the patch that runs a loop in blocks, if other rules can replace the loop over one block."""
    scan = plain_scan(loop, ctx, since.ALLOWZERO)
    if scan is None or isinstance(scan.steps, int) or not {"If", "Scan"} <= ctx.options.target.control_flow:
        return NOTHING_HERE
    answers = [rule.check(scan, ctx) for rule in ctx.rules if rule.recognises]
    needs_steps = any(isinstance(answer, NotApplicable) and answer.code in _UNKNOWN_STEPS_CODES for answer in answers)
    short = _best_cut(scan, ctx) if needs_steps or len(scan.states) > 1 else None
    if short is None:
        return NOTHING_HERE
    return plan_is_faster(scan, ctx, "COST-LINEAR", "blocks of steps") or _patch(scan, short, ctx)


def _patch(loop: ScanView, short: _StepCut, ctx: Context) -> Patch | NotApplicable:
    sizes = StepSizes.of(loop, ctx)
    if sizes.steps_known and sizes.steps < short.length:
        return NotApplicable("COST-LINEAR", f"blocks of {short.length} or more steps would be faster, but {sizes.steps} are usual")
    cut = replace(short, length=_best_length(short.length, sizes))
    names, widest = ", ".join(f"'{state.inner.name}'" for state in loop.states), cut.widest(loop, ctx)
    wide = "" if widest is None else f" with at most {widest} numbers in a state"
    return Patch(
        f"put {names} in a loop over blocks of {cut.length} steps, and the remaining steps in a loop after it",
        lambda: _replace_by_blocks(loop, cut, ctx),
        (f"by an estimate faster from {cut.length} steps on{wide}; a run that has fewer goes step by step",),
    )


def _best_cut(loop: ScanView, ctx: Context) -> _StepCut | None:
    """Return the best cut for which rules replace the loop: large ``assumed`` first, then short blocks."""
    sizes = StepSizes.of(loop, ctx)
    widths = (None,) if all(sizes.has_known_size(state.inner) for state in loop.states) else _ASSUMED_DIMS
    if not _is_replaced(loop, _StepCut(_LENGTHS[-1], widths[-1]), ctx):  # the easiest case
        return None
    cuts = (_StepCut(length, width) for width in widths for length in _LENGTHS)
    return next((cut for cut in cuts if _is_replaced(loop, cut, ctx)), None)


def _is_replaced(loop: ScanView, cut: _StepCut, ctx: Context) -> bool:
    """Return True if one or more rules, one after the other, replace the whole loop over one block."""
    with tried_whole(_block_scan(loop, cut, _initial_values(loop, ctx), ctx)[0], ctx) as (block, recorded):
        left = [block]
        for _ in range(_MAX_PATCHES * len(loop.states)):
            choice = _first_replacement(left.pop(), recorded)
            if choice is None:
                return False
            rule, patch = choice
            if not rule.recognises or rule.name == _ONE_STATE_RULE:
                left += [ScanView.of(node, ctx.opset) for node in patch.edit()]
            if not left:
                return True
    return False


def _first_replacement(loop: ScanView, ctx: Context) -> tuple[RuleInUse, Patch] | None:
    """Return the first rule that replaces or splits ``loop``, and its patch; None for a native cell."""
    for rule in ctx.rules:
        if rule.subject == "loop" and rule.phase in _REPLACING_PHASES and rule.name != RULE.name:
            answer = rule.check(loop, ctx)
            if isinstance(answer, Patch):
                return None if answer.outcome.native else (rule, answer)
    return None


def _best_length(least: int, sizes: StepSizes) -> int:
    """Return the best block length: short blocks add overhead, long blocks leave more steps at the end."""
    if not sizes.steps_known:
        return max(least, _DEFAULT_LENGTH)
    best = math.sqrt(2 * sizes.steps * _BLOCK_NS / sizes.options.costs.step)
    return max(least, *(length for length in _LENGTHS if length <= max(best, _LENGTHS[0]) and length <= max(sizes.steps, least)))


def _replace_by_blocks(loop: ScanView, cut: _StepCut, ctx: Context) -> list[ir.Node]:
    """Replace ``loop`` by loops over blocks. Return the new loops. The first is the loop over one block."""
    build, inside = ctx.builder(), ctx.builder()
    steps = emit_step_count(build, loop)
    are_enough = build.op("Less", build.const([cut.length - 1]), steps)
    values, inner_loops = _write_loops(loop, cut, steps, inside, ctx)
    widest, unknown = cut.widest(loop, ctx), [state.initial for state in loop.states if static_dims(state.initial) is None]
    if widest is not None and unknown:
        are_narrow, wide = ctx.builder(), ctx.builder()
        is_fit = sizes_at_most(are_narrow, [(initial, widest) for initial in unknown])
        as_it_was = copy_with_states(loop, loop.states, ctx)
        wide.nodes.append(as_it_was)
        kept = (wide, as_it_was.outputs)
        values = write_fallback(are_narrow, is_fit, (inside, values), kept, as_it_was, loop.node.name, ctx)
        inside, inner_loops = are_narrow, [*inner_loops, as_it_was]
    results = {old: value for old, value in zip(loop.node.outputs, values, strict=True) if is_used(old)}
    return [*inner_loops, guard_with_fallback(loop, WrittenForm(build, results, (are_enough, inside)), ctx)]


def _write_loops(
    loop: ScanView, cut: _StepCut, steps: ir.Value, inside: Builder, ctx: Context
) -> tuple[Sequence[ir.Value], list[ir.Node]]:
    """Write the loops over blocks and remaining steps to ``inside``. Return the results, and the loops."""
    length = inside.const([cut.length])
    blocks = inside.op("Div", steps, length)
    end = inside.op("Mul", blocks, length)
    inner, outer = _blocks_scan(loop, cut, (blocks, length, end), inside, ctx)
    finals = list(outer.outputs[: len(loop.states)])
    stacks = [reshape_first_axes(inside, stack, [-1], 2, stack, [end]) for stack in outer.outputs[len(loop.states) :]]
    rest, none = ctx.builder(), ctx.builder()
    scans = tuple(replace(scan, outer=_slice_steps(rest, scan, end, None)) for scan in loop.scan_inputs)
    left = copy_with_states(replace(loop, scan_inputs=scans), _states_with(loop, finals), ctx)
    rest.nodes.append(left)
    whole = list(left.outputs[: len(finals)])
    for output, first, then in zip(loop.scan_outputs, stacks, left.outputs[len(finals) :], strict=True):
        whole.append(rest.op("Concat", *((then, first) if output.reverse else (first, then)), axis=0))
    is_left = inside.op("Less", end, steps)
    unchanged = [none.op("Identity", value) for value in (*finals, *stacks)]
    inner_loops = write_fallback(inside, is_left, (rest, whole), (none, unchanged), left, loop.node.name, ctx)
    say_has_steps(left.graph)
    return inner_loops, [inner, outer, left]


def _initial_values(loop: ScanView, ctx: Context) -> list[ir.Value]:
    """Return a new value for each state of ``loop``: the state at the start of a block."""
    return [
        ir.Value(name=ctx.names.fresh(f"{state.inner.name}_begun"), type=state.initial.type, shape=state.initial.shape)
        for state in loop.states
    ]


def _states_with(loop: ScanView, initial: Sequence[ir.Value]) -> list[State]:
    return [replace(state, initial=value) for state, value in zip(loop.states, initial, strict=True)]


def _block_scan(loop: ScanView, cut: _StepCut, states: Sequence[ir.Value], ctx: Context) -> tuple[ir.Node, list[ScanInput]]:
    """Return a Scan over one block that starts with ``states``, and its scan inputs, which read the block."""
    scans = []
    for scan in loop.scan_inputs:
        shape = with_axes(without_axis(scan.outer.shape, 0), 0, cut.length)
        block = ir.Value(name=ctx.names.fresh(f"{scan.inner.name}_block"), type=scan.outer.type, shape=shape)
        scans.append(replace(scan, outer=block))
    node = copy_with_states(replace(loop, scan_inputs=tuple(scans)), _states_with(loop, states), ctx)
    ONE_BLOCK.put(node, True)
    if cut.assumed is not None:
        ASSUMED_SIZE.put(node, cut.assumed)
    return node, scans


def _blocks_scan(
    loop: ScanView, cut: _StepCut, sizes: tuple[ir.Value, ir.Value, ir.Value], build: Builder, ctx: Context
) -> tuple[ir.Node, ir.Node]:
    """Write a Scan over all full blocks. Return the inner Scan over one block, and the outer Scan.

    ``sizes``: the number of blocks, of steps in one block, and of steps in all blocks. ``build``: collects the nodes.
    """
    names, begun, (blocks, length, end) = ctx.names, _initial_values(loop, ctx), sizes
    inner, scans = _block_scan(loop, cut, begun, ctx)
    states = [
        State(state.initial, mine, result, None) for state, mine, result in zip(loop.states, begun, inner.outputs, strict=False)
    ]
    heads = [_slice_steps(build, scan, None, end) for scan in loop.scan_inputs]
    read = [
        ScanInput(reshape_first_axes(build, head, [-1, cut.length], 1, head, [blocks, length]), block.outer, reverse=block.reverse)
        for head, block in zip(heads, scans, strict=True)
    ]
    body = ir.Graph([], [], nodes=[inner], name=names.fresh("block"))
    stacks = [
        ScanOutput(result, None, reverse=output.reverse)
        for result, output in zip(inner.outputs[len(states) :], loop.scan_outputs, strict=True)
    ]
    outer = make_scan(names, body, states, read, stacks, loop.node.name or "scan")
    for result, stack in zip(inner.outputs[len(states) :], outer.outputs[len(states) :], strict=True):
        stack.shape = with_axes(result.shape, 0, None)
    build.nodes.append(outer)
    return inner, outer


def _slice_steps(build: Builder, scan: ScanInput, start: ir.Value | None, end: ir.Value | None) -> ir.Value:
    """Return the rows of the steps ``start`` to ``end`` - 1. None means no limit. ``start`` must not be 0."""
    if scan.reverse:
        start, end = (None if step is None else build.op("Neg", step) for step in (end, start))
    first = build.const([0]) if start is None else start
    rows = build.op("Slice", scan.outer, first, build.const([_END]) if end is None else end, build.const([0]))
    rows.shape = with_axes(without_axis(scan.outer.shape, 0), 0, None)
    return rows


RULE = Rule("blocks-of-steps", "recurrence", "loop", check)
