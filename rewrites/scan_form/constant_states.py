"""Runs the states of a Scan that depend on constants alone, and scans their values instead.

    Scan(P0, h0, xs) body(P, h, x) => (f(P), g(h, x, P))    ->    Scan(h0, xs, Ps) body(h, x, P) => g(h, x, P)

Here ``Ps`` is the constant [P0, f(P0), f(f(P0)), ...]. Examples are the covariance of a Kalman filter, schedules of step sizes and
noise, and position tables. Nodes that read only such states can then be moved out of the loop.

Conditions:

* The number of steps is known, and the initial values are constants.
* A step computes the states from these states, constants, and rows of constants.
* The operators return the same results in each run.
* The constant rows have at most 1 MiB, and computing them takes few operations.
* The loop is not an opset-8 Scan.
"""

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic, nodes_computing, reads, varying_values
from rewrites.base.plain_text import listed
from rewrites.graph.context import Context, evaluate_nodes
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_array, is_read
from rewrites.loops import Loop, ScanInput, ScanView, State
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.scanned_states import replace_states_by_scan_inputs

__all__ = ["RULE", "check"]

_MOST_BYTES = 1 << 20
_MOST_OPERATIONS = 1 << 17
"""The most runs of a node. A run of a small node takes about 1 µs."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop is a Scan with states that depend on constants alone."""
    if not isinstance(loop, ScanView) or loop.batched or not isinstance(loop.steps, int) or loop.steps < 1:
        return NOTHING_HERE
    states = _constant_states(loop)
    nodes = nodes_computing(loop.body, [state.next for state in states])
    if not nodes:
        return NOTHING_HERE
    names = listed(state.inner.name for state in states)
    size = loop.steps * sum(array.nbytes for state in states if (array := const_array(state.initial)) is not None)
    if size > _MOST_BYTES:
        return NotApplicable("CONSTANT-STATES", f"{names} would take {size} bytes for all steps (limit: {_MOST_BYTES})")
    if loop.steps * len(nodes) > _MOST_OPERATIONS:
        detail = f"{loop.steps} steps of {len(nodes)} operators compute {names} (limit: {_MOST_OPERATIONS} operators)"
        return NotApplicable("CONSTANT-STATES", detail)
    results = _run(loop, states, nodes, loop.steps, ctx)
    if results is None:
        return NOTHING_HERE
    finals, rows = results[: len(states)], results[len(states) :]

    def edit() -> list[ir.Node]:
        build = ctx.builder()
        inputs = [ScanInput(build.const(stack), state.inner) for state, stack in zip(states, rows, strict=True)]
        for state, final in zip(states, finals, strict=True):
            if state.final is not None and is_read(state.final):
                replace_value(state.final, build.const(final), ctx.names)
        build.insert_before(loop.node)
        return [replace_states_by_scan_inputs(loop, inputs, ctx)]

    return Patch(f"computed {names} for all {loop.steps} steps, because they depend on constants alone", edit)


def _constant_states(loop: ScanView) -> list[State]:
    """Return the states that depend on constants alone, except states that never change."""
    read = [value for node in loop.body for value in reads(node)]
    inside = {*loop.body.inputs, *(value for node in loop.body for value in node.outputs)}
    unknown = {value for value in read if value not in inside and const_array(value) is None}
    unknown |= {scan.inner for scan in loop.scan_inputs if const_array(scan.outer) is None}
    unknown |= {value for node in loop.body if not is_deterministic(node) for value in node.outputs}
    states = [state for state in loop.states if _is_plain(const_array(state.initial)) and state.next is not state.inner]
    while True:
        others = {state.inner for state in loop.states} - {state.inner for state in states}
        varying = varying_values(loop.body, unknown | others)
        kept = [state for state in states if state.next not in varying]
        if len(kept) == len(states):
            return states
        states = kept


def _is_plain(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype.kind in "fiub"


def _run(
    loop: ScanView, states: Sequence[State], nodes: Sequence[ir.Node], steps: int, ctx: Context
) -> Sequence[np.ndarray] | None:
    """Run the steps of ``states``, and return their final values and the stacks of their values.

    A stack has the values of a state before each step. Return None if onnxruntime cannot run the steps, or if a state changes its
    shape.
    """
    read = [value for node in nodes for value in reads(node)]
    needed = list(dict.fromkeys([*read, *(state.next for state in states)]))
    inside = {*loop.body.inputs, *(value for node in nodes for value in node.outputs)}
    scans = [scan for scan in loop.scan_inputs if scan.inner in needed]
    outer = dict.fromkeys([value for value in needed if value not in inside] + [scan.outer for scan in scans])
    constants = {value: array for value in outer if (array := const_array(value)) is not None}
    names = {value.name for value in (*inside, *constants)}

    def fresh(hint: str) -> str:
        while hint in names:
            hint += "_"
        names.add(hint)
        return hint

    step, condition, goes_on, limit, last, start = map(fresh, ("step", "condition", "goes_on", "limit", "last", "start"))
    added = {limit: np.array(steps), last: np.array(steps - 1), start: np.array(True)}
    make = onnx.helper.make_node
    before = [make("Identity", [condition], [goes_on])]
    for scan in scans:
        index = fresh("index")
        before.append(make("Sub", [last, step], [index]) if scan.reverse else make("Identity", [step], [index]))
        before.append(make("Gather", [scan.outer.name or "", index], [scan.inner.name or ""], axis=scan.axis))
    inputs = [_declaration(step, np.array(0)), _declaration(condition, np.array(True))]
    outputs, stacks = [_declaration(goes_on, np.array(True))], list[onnx.ValueInfoProto]()
    initial, after = list[str](), list[onnx.NodeProto]()
    for state in states:
        array = const_array(state.initial)
        assert array is not None
        initial.append(fresh("initial"))
        added[initial[-1]] = array
        inputs.append(_declaration(state.inner.name or "", array))
        for results, source in ((outputs, state.next), (stacks, state.inner)):
            results.append(_declaration(fresh("result"), array))
            after.append(make("Identity", [source.name or ""], [results[-1].name]))
    body = onnx.helper.make_graph([*before, *map(ir.serde.serialize_node, nodes), *after], "steps", inputs, [*outputs, *stacks])
    names_of_results = [fresh("final") for _ in (*states, *states)]
    run = make("Loop", [limit, start, *initial], names_of_results, body=body)
    constants |= {ir.Value(name=name): array for name, array in added.items()}
    arrays = evaluate_nodes([run], constants, [ir.Value(name=name) for name in names_of_results], ctx)
    shapes = [added[name].shape for name in initial] + [(steps, *added[name].shape) for name in initial]
    return arrays if arrays is not None and [array.shape for array in arrays] == shapes else None


def _declaration(name: str, like: np.ndarray) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(like.dtype), like.shape)


RULE = Rule("constant-states", "scan_form", "loop", check)
