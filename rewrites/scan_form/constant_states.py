"""Runs the states of a Scan that depend on constants alone, and scans their values instead.

    Scan(P0, h0, xs) body(P, h, x) => (f(P), g(h, x, P))    ->    Scan(h0, xs, Ps) body(h, x, P) => g(h, x, P)

Here ``Ps`` is the constant [P0, f(P0), f(f(P0)), ...]. Examples are the covariance of a Kalman filter, schedules of step sizes and
noise, and position tables. Nodes that read only such states can then be moved out of the loop. If
what other nodes read of the states is smaller than the states, only that is scanned. An example is the gain of a Kalman filter.

Conditions:

* The number of steps is known, and the initial values are constants.
* A step computes the states from these states, constants, and rows of constants. The rows have no strings, because onnxruntime's
  Gather copies only the first string of each row.
* The operators return the same results in each run.
* The constant rows have at most 1 MiB, and computing them takes few operations.
* The loop is not an opset-8 Scan.

Works around ORT-GATHER-STRINGS.
"""

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import is_deterministic, nodes_computing, reads, varying_values
from rewrites.analysis.loop_parts import LoopPart
from rewrites.base.plain_text import listed
from rewrites.graph.context import Context
from rewrites.graph.dims import FREE
from rewrites.graph.replace import replace_value
from rewrites.graph.values import const_array, is_constant, is_read, shape_dims, static_dims
from rewrites.loops import Loop, ScanInput, ScanView, State
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from rewrites.scan_form.scanned_states import replace_states_by_scan_inputs

__all__ = ["RULE", "check"]

_MOST_BYTES = 1 << 20
_TYPES = frozenset(
    {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL}
)
"""The types of values that may be scanned instead of states."""
_MOST_OPERATIONS = 1 << 17
"""The most runs of a node. A run of a small node takes about 1 µs."""


def check(loop: Loop, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the loop is a Scan with states that depend on constants alone."""
    if not isinstance(loop, ScanView) or loop.batched or loop.steps == 0:
        return NOTHING_HERE
    states, varying = _constant_states(loop)
    if not nodes_computing(loop.body, [state.next for state in states]):
        return NOTHING_HERE
    names, scanned = listed(state.inner.name for state in states), _values_to_scan(loop, states, varying)
    if not isinstance(loop.steps, int):
        return NotApplicable("CONSTANT-STATES", f"{names} can be computed in advance if {_condition_on_steps(loop, ctx)}")
    nodes = nodes_computing(loop.body, [*(state.next for state in states), *scanned])
    size = loop.steps * sum(map(_bytes, scanned))
    if size > _MOST_BYTES:
        return NotApplicable("CONSTANT-STATES", f"{names} would take {size} bytes for all steps (limit: {_MOST_BYTES})")
    if loop.steps * len(nodes) > _MOST_OPERATIONS:
        detail = f"{loop.steps} steps of {len(nodes)} operators compute {names} (limit: {_MOST_OPERATIONS} operators)"
        return NotApplicable("CONSTANT-STATES", detail)
    read = {value for node in nodes for value in reads(node)} | {state.next for state in states}
    part = LoopPart(nodes, states, [scan for scan in loop.scan_inputs if scan.inner in read])
    run = part.run(loop.steps, scanned, ctx)
    if run is None or [array.shape for array in run.stacks] != [(loop.steps, *(static_dims(value) or ())) for value in scanned]:
        return NOTHING_HERE
    finals, stacks = run.finals, run.stacks

    def edit() -> list[ir.Node]:
        build, inputs = ctx.builder(), list[ScanInput]()
        for value, stack in zip(scanned, stacks, strict=True):
            inner = value
            if value.producer() is not None:
                inner = ir.Value(name=ctx.names.fresh(f"{value.name}_in"), type=value.type, shape=value.shape)
                replace_value(value, inner, ctx.names)
            inputs.append(ScanInput(build.const(stack), inner))
        for state, final in zip(states, finals, strict=True):
            if state.final is not None and is_read(state.final):
                replace_value(state.final, build.const(final), ctx.names)
        build.insert_before(loop.node)
        return [replace_states_by_scan_inputs(loop, states, inputs, ctx)]

    return Patch(f"computed {names} for all {loop.steps} steps, because they depend on constants alone", edit)


def _condition_on_steps(loop: ScanView, ctx: Context) -> str:
    """Return the condition on the unknown number of steps, with the option that fixes it, if there is one."""
    dims = {dim for value in ctx.model.graph.inputs if value.shape is not None for dim in shape_dims(value.shape)}
    if loop.steps is None or loop.steps not in dims:
        return "the number of steps is known"
    if str(loop.steps).startswith(FREE):
        return "the number of steps is fixed (--fix-shape)"
    return f"the number of steps, {loop.steps}, is fixed (--fix-dim)"


def _values_to_scan(loop: ScanView, states: Sequence[State], varying: set[ir.Value]) -> list[ir.Value]:
    """Return the values to scan instead of ``states``.

    These are the states themselves, or what other nodes read of them if it is smaller. ``varying``: the values that do not
    depend on constants alone.
    """
    own = [state.inner for state in states]
    computed = varying_values(loop.body, own) - varying
    read = [value for node in loop.body if varying.intersection(node.outputs) for value in reads(node) if value in computed]
    others = list(dict.fromkeys(read))
    is_plain = all(static_dims(value) is not None and value.dtype in _TYPES for value in others)
    is_smaller = is_plain and not computed.intersection(_results_of_others(loop, states))
    return others if is_smaller and sum(map(_bytes, others)) < sum(map(_bytes, own)) else own


def _results_of_others(loop: ScanView, states: Sequence[State]) -> list[ir.Value]:
    """Return the results of the body, except the next values of ``states``."""
    return [*(state.next for state in loop.states if state not in states), *(output.inner for output in loop.scan_outputs)]


def _bytes(value: ir.Value) -> int:
    return math.prod(static_dims(value) or ()) * (1 if value.dtype is None else max(1, int(value.dtype.itemsize)))


def _constant_states(loop: ScanView) -> tuple[list[State], set[ir.Value]]:
    """Return the states that depend on constants alone, and the values that do not.

    States that never change are no such states.
    """
    read = [value for node in loop.body for value in reads(node)]
    inside = {*loop.body.inputs, *(value for node in loop.body for value in node.outputs)}
    unknown = {value for value in read if value not in inside and not is_constant(value)}
    unknown |= {scan.inner for scan in loop.scan_inputs if not _is_plain(const_array(scan.outer))}
    unknown |= {value for node in loop.body if not is_deterministic(node) for value in node.outputs}
    states = [state for state in loop.states if _is_plain(const_array(state.initial)) and state.next is not state.inner]
    while True:
        others = {state.inner for state in loop.states} - {state.inner for state in states}
        varying = varying_values(loop.body, unknown | others)
        kept = [state for state in states if state.next not in varying]
        if len(kept) == len(states):
            return states, varying
        states = kept


def _is_plain(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype.kind in "fiub"


RULE = Rule("constant-states", "scan_form", "loop", check)
