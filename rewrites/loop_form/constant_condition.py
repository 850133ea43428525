"""A condition that depends only on constants and the step number becomes a constant trip count.

    Loop(M, true, 1, h0) body(i, c, k, h) => (k * 2 mod 7 != 4, k * 2, f(h))    ->    Loop(2, true, 1, h0) ...

The rule runs the nodes that the condition depends on, and counts the steps until the condition is false. Conditions: these nodes
read only the step number, constants, and states. The states start as constants, and only these nodes compute their next values. The
nodes compute only integers and booleans, because their values are equal on every runtime. The condition is false after at most
``_MOST_STEPS`` steps. The rule ``trip-count`` handles conditions on induction variables without running them.
"""

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.analysis.loop_parts import LoopPart
from rewrites.cleanup.folding import divides_by_zero
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, const_scalar
from rewrites.graph.walk import node_graphs
from rewrites.loops import Loop, LoopView, State
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.step_counts import set_trip_count

__all__ = ["RULE", "check"]


_MOST_STEPS = 4096
_MOST_NODES = 64
_MOST_BYTES = 1 << 12


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the condition of a Loop can be computed before the loop runs."""
    if not isinstance(loop, LoopView) or loop.never_stops_early:
        return NOTHING_HERE
    if loop.condition is not None and const_scalar(loop.condition) is not True:
        return NOTHING_HERE
    limit = const_scalar(loop.limit) if loop.limit is not None else _MOST_STEPS + 1
    part = _condition_part(loop)
    run = None if limit is None or part is None else part.run(min(int(limit), _MOST_STEPS + 1), [], ctx)
    if run is None:
        return NOTHING_HERE
    steps = run.steps
    if steps > _MOST_STEPS:
        detail = f"the condition depends only on constants, and still holds after {_MOST_STEPS} steps"
        return NotApplicable("LOOP-CONDITION", detail)

    def edit() -> list[ir.Node]:
        set_trip_count(loop, ctx.constants.value(np.array(steps, np.int64)), ctx)
        return [loop.node]

    return Patch(f"ran the condition, which constants decide: it holds for {steps} steps", edit)


def _condition_part(loop: LoopView) -> LoopPart | None:
    """Return the part of ``loop`` on which the condition depends; None if it is unsupported."""
    by_inner = {state.inner: state for state in loop.states}
    nodes: set[ir.Node] = set()
    states: list[State] = []
    pending, visited = [loop.condition_out], {loop.iteration, loop.condition_in}
    while pending:
        value = pending.pop()
        if value in visited:
            continue
        visited.add(value)
        node = value.producer()
        if value in by_inner:
            state = by_inner[value]
            if not _is_small_constant(state.initial):
                return None
            states.append(state)
            pending.append(state.next)
        elif node is not None and node.graph is loop.body and node.op_type != "Constant":
            if node in nodes:
                continue
            if node.domain != "" or node_graphs(node) or not is_deterministic(node) or divides_by_zero(node, {}):
                return None
            operands = [operand for operand in node.inputs if operand is not None]
            if not all(map(_is_integer_or_bool, (*operands, *node.outputs))):
                return None
            nodes.add(node)
            pending.extend(operands)
        elif not _is_small_constant(value):
            return None
    if len(nodes) > _MOST_NODES:
        return None
    return LoopPart([node for node in loop.body if node in nodes], states, counted=loop)


def _is_integer_or_bool(value: ir.Value) -> bool:
    """Return True if ``value`` has integers or booleans."""
    return value.dtype is not None and (value.dtype.is_integer() or value.dtype == ir.DataType.BOOL)


def _is_small_constant(value: ir.Value) -> bool:
    """Return True if ``value`` is a constant of integers or booleans with at most ``_MOST_BYTES`` bytes."""
    array = const_array(value)
    return array is not None and array.nbytes <= _MOST_BYTES and array.dtype.kind in "biu"


RULE = Rule("constant-condition", "loop_form", "loop", check)
