"""A condition that depends only on constants and the step number becomes a constant trip count.

    Loop(M, true, 1, h0) body(i, c, k, h) => (k * 2 mod 7 != 4, k * 2, f(h))    ->    Loop(2, true, 1, h0) ...

The rule runs the nodes that the condition depends on, and counts the steps until the condition is false. Conditions: these nodes
read only the step number, constants, and states. The states start as constants, and only these nodes compute their next values. The
nodes compute only integers and booleans, because their values are equal on every runtime. The condition is false after at most
``_MOST_STEPS`` steps. The rule ``trip-count`` handles conditions on induction variables without running them.
"""

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic
from rewrites.cleanup.folding import divides_by_zero
from rewrites.graph.context import Context
from rewrites.graph.values import const_array, const_scalar, rank_of
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
    steps = None if limit is None or part is None else _count_steps(loop, *part, min(int(limit), _MOST_STEPS + 1), ctx)
    if steps is None:
        return NOTHING_HERE
    if steps > _MOST_STEPS:
        detail = f"the condition depends only on constants, and still holds after {_MOST_STEPS} steps"
        return NotApplicable("LOOP-CONDITION", detail)

    def edit() -> list[ir.Node]:
        set_trip_count(loop, ctx.constants.value(np.array(steps, np.int64)), ctx)
        return [loop.node]

    return Patch(f"ran the condition, which constants decide: it holds for {steps} steps", edit)


def _condition_part(loop: LoopView) -> tuple[list[ir.Node], list[State]] | None:
    """Return the nodes and states on which the condition depends; None if one of them is unsupported."""
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
    return [node for node in loop.body if node in nodes], states


def _is_integer_or_bool(value: ir.Value) -> bool:
    """Return True if ``value`` has integers or booleans."""
    return value.dtype is not None and (value.dtype.is_integer() or value.dtype == ir.DataType.BOOL)


def _is_small_constant(value: ir.Value) -> bool:
    """Return True if ``value`` is a constant of integers or booleans with at most ``_MOST_BYTES`` bytes."""
    array = const_array(value)
    return array is not None and array.nbytes <= _MOST_BYTES and array.dtype.kind in "biu"


def _count_steps(loop: LoopView, nodes: Sequence[ir.Node], states: Sequence[State], limit: int, ctx: Context) -> int | None:
    """Run a Loop of only ``nodes`` and ``states``, and return the number of steps that it runs.

    The Loop stops after at most ``limit`` steps. Return None if onnxruntime fails.
    """
    inner_values = {value for node in nodes for value in node.outputs} | {state.inner for state in states}
    inner_values |= {loop.iteration, loop.condition_in}
    read = [value for node in nodes for value in node.inputs if value is not None]
    read += [loop.condition_out, *(state.next for state in states)]
    outer_values = {value.name or "": value for value in read if value not in inner_values}
    names = {value.name or "" for value in inner_values} | outer_values.keys()

    def fresh_name(hint: str) -> str:
        while hint in names:
            hint += "_"
        names.add(hint)
        return hint

    count, next_count, one, total, max_steps, true = (
        fresh_name(hint) for hint in ("count", "after", "one", "total", "most", "true")
    )
    initial = [fresh_name("initial") for _ in states]
    state_types = [onnx.helper.make_tensor_type_proto(int(state.inner.dtype or 0), None) for state in states]
    body = onnx.helper.make_graph(
        [*map(ir.serde.serialize_node, nodes), onnx.helper.make_node("Add", [count, one], [next_count])],
        "body",
        [
            _declaration(loop.iteration.name, 7, loop.iteration),
            _declaration(loop.condition_in.name, 9, loop.condition_in),
            _declaration(count, 7),
        ]
        + [onnx.helper.make_value_info(state.inner.name or "", kind) for state, kind in zip(states, state_types, strict=True)],
        [_declaration(loop.condition_out.name, 9, loop.condition_out), _declaration(next_count, 7)]
        + [onnx.helper.make_value_info(state.next.name or "", kind) for state, kind in zip(states, state_types, strict=True)],
    )
    node = onnx.helper.make_node(
        "Loop", [max_steps, true, count + "0", *initial], [total, *(name + "_last" for name in initial)], body=body
    )
    arrays = {max_steps: np.array(limit), true: np.array(True), count + "0": np.array(0), one: np.array(1)}
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    for name, value in [*zip(initial, (state.initial for state in states), strict=True), *outer_values.items()]:
        array = const_array(value)
        assert array is not None
        constants.append(onnx.numpy_helper.from_array(array, name))
    graph = onnx.helper.make_graph([node], "condition", [], [_declaration(total, 7)], constants)
    imports = [onnx.helper.make_opsetid("", ctx.opset)]
    version = max(4, min(ctx.model.ir_version, 10))
    results = ctx.evaluate(onnx.helper.make_model(graph, opset_imports=imports, ir_version=version))
    return None if results is None else int(results[0])


def _declaration(name: str | None, element_type: int, like: ir.Value | None = None) -> onnx.ValueInfoProto:
    """Return the declaration of a value of one element: a vector if ``like`` is a vector, else a scalar.

    ``element_type``: the ONNX number of the type, such as 7 for int64.
    """
    return onnx.helper.make_tensor_value_info(name or "", element_type, [1] if like is not None and rank_of(like) == 1 else [])


RULE = Rule("constant-condition", "loop_form", "loop", check)
