"""Keep a loop as the fallback in an If, for inputs that its closed form does not cover.

    Scan(s0, xs)    ->    If (all numbers are finite) closed form else Scan(s0, xs)
    Scan(s0, xs)    ->    If (Size(s0) <= widest) Scan(s0, xs), marked as narrow, else Scan(s0, xs)

The second rewrite is for closed forms that are slower than the loop for wide states. Later, a rule writes the closed form in place
of the Scan that is marked as narrow. The other Scan stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.fission.separate import copy_with_states, in_trial_graph
from rewrites.graph.branches import has_steps, say_has_steps, write_if
from rewrites.graph.builder import Builder
from rewrites.graph.context import Context
from rewrites.graph.marks import ASSUMED_SIZE, IS_NARROW
from rewrites.graph.values import bytes_per_element, dim_of, static_dims
from rewrites.loops import Loop, ScanView, State
from rewrites.loops.rebuild import detached_copy, replace_node
from rewrites.ops.versions import reshape, shape_of
from rewrites.recurrences.results import is_used
from rewrites.rule import NotApplicable

__all__ = [
    "WrittenForm",
    "all_finite_and_bounded",
    "all_of",
    "can_check_width",
    "guard_steps",
    "guard_width",
    "guard_with_fallback",
    "is_fallback_loop",
    "narrow_copy",
    "no_fallback",
    "sizes_at_most",
    "states_of_unknown_width",
    "tried_whole",
    "write_fallback",
]

_FALLBACK = "otherwise_the_loop"
"""The name prefix of branches that hold a fallback."""


@dataclass(frozen=True)
class WrittenForm:
    """The nodes of a closed form.

    Args:
        build: The nodes that always run.
        results: The new value of each used output of the loop.
        guard: A tuple (flag, nodes). The flag is true if the form covers the inputs. The nodes run only if the flag is true.
    """

    build: Builder
    results: Mapping[ir.Value, ir.Value]
    guard: tuple[ir.Value, Builder]


def no_fallback(ctx: Context) -> NotApplicable | None:
    """Return a reason if the target lacks Ifs or loops, so that no If can keep a loop as the fallback."""
    if ctx.options.target.loops and "If" in ctx.options.target.control_flow:
        return None
    return NotApplicable("LINEAR-CORNERS", "a target without Scan and If could not keep the loop for values that are not finite")


def is_fallback_loop(loop: Loop, ctx: Context) -> bool:
    """Return True if ``loop`` is in a branch that holds a fallback, directly or inside further Ifs."""
    return any((graph.name or "").startswith(_FALLBACK) for graph in _branches_around(loop, ctx))


def _branches_around(loop: Loop, ctx: Context) -> Iterator[ir.Graph]:
    """Yield the graphs around ``loop``, innermost first: the branches of the Ifs that contain it.

    If ``loop`` is nested in an outer loop, the last graph is the body of the nearest outer loop. The main graph is left out.
    """
    graph = loop.node.graph
    while isinstance(graph, ir.Graph) and graph is not ctx.model.graph:
        yield graph
        guard = ctx.if_around(graph)
        graph = None if guard is None else guard.graph


def write_fallback(
    build: Builder,
    condition: ir.Value,
    closed: tuple[Builder, Sequence[ir.Value]],
    kept: tuple[Builder, Sequence[ir.Value]],
    scan: ir.Node,
    hint: str | None,
    ctx: Context,
) -> tuple[ir.Value, ...]:
    """Write an If that runs ``closed`` if ``condition`` is true, else ``kept``. Return its outputs.

    ``closed`` and ``kept`` are pairs (nodes, outputs). The branch that contains ``scan`` is marked as a fallback.
    """
    values = write_if(build, condition, closed, kept, hint)
    assert scan.graph is not None
    scan.graph.name = ctx.names.fresh(_FALLBACK)
    return values


def guard_with_fallback(loop: ScanView, form: WrittenForm, ctx: Context) -> ir.Node:
    """Replace ``loop`` by an If that runs ``form`` if its guard is true, and otherwise a copy of the loop.

    Return this copy, a Scan.
    """
    old, scan = loop.node, detached_copy(loop, ctx.names)
    values = _write_choice(loop, scan, form, ctx)
    choice = form.build.nodes.pop()
    form.build.insert_before(old)
    replace_node(old, choice, list(values.items()), ctx.names)
    return scan


def guard_steps(loop: ScanView, form: WrittenForm, steps: tuple[int, int | None], ctx: Context) -> list[ir.Node]:
    """Replace ``loop`` by two nested Ifs, which run ``form`` or a copy of the loop.

    The outer If checks the number of steps, and the inner If checks the guard of ``form``. If both checks pass, ``form`` runs.

    Args:
        steps: The smallest and the largest number of steps for which ``form`` runs. None as the largest number means no limit.

    Returns:
        The copies of the loop in the inner and in the outer If.
    """
    (least, most), outer = steps, ctx.builder()
    first, *others = loop.scan_inputs
    count = shape_of(outer, first.outer, first.axis)
    is_fit = outer.op("Less", outer.const([least - 1]), count)
    for scan in others:  # a Scan fails on inputs of different lengths, and so must the new model
        if dim_of(scan.outer, scan.axis) is None or dim_of(scan.outer, scan.axis) != dim_of(first.outer, first.axis):
            is_fit = outer.op("And", is_fit, outer.op("Equal", shape_of(outer, scan.outer, scan.axis), count))
    if most is not None:
        is_fit = outer.op("And", is_fit, outer.op("Less", count, outer.const([most + 1])))
    fallback = copy_with_states(loop, loop.states, ctx)
    values = _write_choice(loop, fallback, form, ctx)
    say_has_steps(fallback.graph)
    return [fallback, guard_with_fallback(loop, WrittenForm(outer, values, (is_fit, form.build)), ctx)]


def _write_choice(loop: ScanView, scan: ir.Node, form: WrittenForm, ctx: Context) -> dict[ir.Value, ir.Value]:
    """Append an If to ``form.build`` that runs the form if its guard is true, else ``scan``.

    Return a dictionary from each used output of the loop to the output of the If that replaces it.
    """
    (condition, inside), fallback = form.guard, ctx.builder()
    fallback.nodes.append(scan)
    outputs = [(old, kept) for old, kept in zip(loop.node.outputs, scan.outputs, strict=True) if old in form.results]
    flag = reshape(form.build, condition, [1]) if condition.shape is None else condition
    closed, kept = (inside, [form.results[old] for old, _ in outputs]), (fallback, [kept for _, kept in outputs])
    values = write_fallback(form.build, flag, closed, kept, scan, loop.node.name, ctx)
    return {old: value for (old, _), value in zip(outputs, values, strict=True)}


def all_of(build: Builder, flags: Iterable[ir.Value]) -> ir.Value:
    """Return a flag that is true if all ``flags`` are true. There must be at least one."""
    return reduce(partial(build.op, "And"), flags)


def all_finite_and_bounded(
    build: Builder, values: Sequence[ir.Value], largest: float, dtype: np.dtype, *, no_negative_zeros: bool = False
) -> ir.Value:
    """Return a flag that is true if all ``values`` are finite and their common norm is below ``largest``.

    The norm is the root of the sum of all squares. If ``no_negative_zeros``, the flag is false if an element is -0.
    """
    total = reduce(partial(build.op, "Add"), [build.op("ReduceSumSquare", value, keepdims=0) for value in values])
    flag = build.op("Less", total, build.const(np.array(largest * largest, dtype)))
    for value in values if no_negative_zeros else ():
        unit, least = build.const(np.array(1, dtype)), build.const(np.array(-np.finfo(dtype).max, dtype))
        inverse = build.op("ReduceMin", build.op("Div", unit, value), keepdims=0)
        flag = build.op("And", flag, build.op("Less", least, inverse))
    return flag


def states_of_unknown_width(loop: ScanView, sizes: StepSizes) -> list[State]:
    """Return the states whose size is not known from the model or the options.

    Return an empty list if an If around ``loop`` checks the sizes.
    """
    if IS_NARROW.on(loop.node) or ASSUMED_SIZE.on(loop.node):
        return []
    return [state for state in loop.states if static_dims(state.initial) is None and not sizes.has_known_size(state.inner)]


def can_check_width(loop: ScanView, ctx: Context) -> bool:
    """Return True if an If around ``loop`` may check the width of its states.

    The target must run loops and Ifs, and ``loop`` must not be inside another loop. Otherwise, the If would prevent batching this
    other loop.
    """
    return no_fallback(ctx) is None and all(ctx.if_around(graph) is not None for graph in _branches_around(loop, ctx))


def sizes_at_most(build: Builder, limits: Iterable[tuple[ir.Value, int]]) -> ir.Value:
    """Return a flag that is true if no value has more elements than its limit."""
    bounds = ((value, build.const([limit + 1])) for value, limit in limits)
    return all_of(build, (build.op("Less", build.op("Size", value), bound) for value, bound in bounds))


def guard_width(loop: ScanView, states: list[State], widest: int, ctx: Context) -> list[ir.Node]:
    """Replace ``loop`` by an If with two copies of the loop: one for narrow states, one for wide states.

    The narrow copy runs if each of ``states`` has at most ``widest`` bytes. It is marked, so that a later rule can replace it.

    Returns:
        The narrow copy and the other copy.
    """
    build, inside = ctx.builder(), ctx.builder()
    condition = sizes_at_most(build, [(state.initial, widest // bytes_per_element(state.initial)) for state in states])
    always_steps = has_steps(loop.node.graph)
    narrow = narrow_copy(loop, ctx)
    inside.nodes.append(narrow)
    results = {old: value for old, value in zip(loop.node.outputs, narrow.outputs, strict=True) if is_used(old)}
    fallback = guard_with_fallback(loop, WrittenForm(build, results, (condition, inside)), ctx)
    if always_steps:
        say_has_steps(narrow.graph)
        say_has_steps(fallback.graph)
    return [narrow, fallback]


def narrow_copy(loop: ScanView, ctx: Context) -> ir.Node:
    """Return a detached copy of ``loop``, marked as a loop that only runs for narrow states."""
    node = copy_with_states(loop, loop.states, ctx)
    IS_NARROW.put(node, True)
    return node


@contextmanager
def tried_whole(node: ir.Node, ctx: Context) -> Iterator[tuple[ScanView, Context]]:
    """Insert the new Scan ``node`` temporarily, so that rules can be tried on it.

    Yield the Scan as a view, with all its outputs in use, and the context for the rules.
    """
    with in_trial_graph(node, ctx) as trial:
        assert isinstance(node.graph, ir.Graph)
        node.graph.outputs.extend(node.outputs)
        yield trial
