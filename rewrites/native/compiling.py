"""Compiles a loop into a loop plan, or returns the reason why that is impossible."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.shapes.sizes_without_steps import known_sizes
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.values import rank_of, static_dims
from rewrites.loops import Loop, LoopView, ScanView, State
from rewrites.native.around import Around, nothing_around, unsqueezed
from rewrites.native.body import Body, BodyStep, type_name
from rewrites.native.encoding import count_sizes
from rewrites.native.free_sizes import SAMPLES, FreeSizes, SameSizes, joined
from rewrites.native.fusing import fused
from rewrites.native.memory import computed_in_parts, place_results
from rewrites.native.nested import translate_graph
from rewrites.native.operations import BOOL, INT64, NUMPY
from rewrites.native.plan import Form, Input, InputKind, Output, Plan, PlanRefused, Size
from rewrites.native.schedule import scheduled
from rewrites.native.translators import translate
from rewrites.native.views import Buffer, Home, View, whole
from rewrites.native.walks import PRODUCTS, make_regular
from rewrites.native.writing import write

__all__ = ["Compiled", "compile_loop"]

_MOST_ELEMENTS = 2**31 - 1
_MOST_PORTS = 4096
_MOST_ENTRIES = 65_536
_MOST_AXES = 16
_PANEL = 16
"""The number of columns of a packed matrix is rounded up to a multiple of this."""


@dataclass(frozen=True)
class Compiled:
    """A plan, and the outer values that it captures. They are the last inputs of the plan, in this order."""

    plan: Plan
    captured: tuple[ir.Value, ...]
    notes: tuple[str, ...] = ()


def check_limits(plan: Plan) -> None:
    """Raise PlanRefused if ``plan`` exceeds the limits of the format. All its sizes must be numbers."""
    dims = [*(each.dims for each in plan.inputs), *(each.dims for each in plan.outputs)]
    shapes = [[size.coefficient for size in each] for each in dims]
    packed = [pack.k.coefficient * -(-pack.n.coefficient // _PANEL) * _PANEL for pack in plan.packs]
    walked = [
        math.prod(size.coefficient for size in each.dims)
        * (math.prod(sorted(size.coefficient for size in each.matrix)[1:]) if each.op in PRODUCTS else 1)
        for each in plan.instructions
    ]
    if max([*map(math.prod, shapes), *packed, *walked, *(each.coefficient for each in plan.regions)]) > _MOST_ELEMENTS:
        raise PlanRefused("NATIVE-LIMIT", f"a value, or the walk of an operation, has more than {_MOST_ELEMENTS} elements")
    if max(len(plan.inputs), len(plan.outputs) + len(plan.states), len(plan.packs), len(plan.regions)) > _MOST_PORTS:
        raise PlanRefused("NATIVE-LIMIT", f"it has more than {_MOST_PORTS} inputs or outputs")
    if max(len(plan.values), len(plan.instructions), count_sizes(plan)) > _MOST_ENTRIES:
        raise PlanRefused("NATIVE-LIMIT", f"it would need more than {_MOST_ENTRIES} instructions, values or sizes")
    if any(len(shape) > _MOST_AXES for shape in shapes):
        raise PlanRefused("NATIVE-LIMIT", f"a value has more than {_MOST_AXES} axes")


def compile_loop(loop: Loop, ctx: Context, beside: Around | None = None) -> Compiled | NotApplicable:
    """Compile ``loop`` and the operators ``beside`` it into one plan.

    Return the plan, or the reason why the loop has no plan.
    """

    def compiled(free: FreeSizes) -> Compiled:
        return _loop(loop, ctx, free) if isinstance(loop, LoopView) else _scan(loop, ctx, free, beside or nothing_around(loop))

    known: dict[str, str | int] = {}
    while True:
        try:
            first = compiled(free := FreeSizes(SAMPLES[0], known))
            check_limits(first.plan)
            if not free.symbols:
                return first
            second = compiled(FreeSizes(SAMPLES[1], known))
            return Compiled(joined(first.plan, second.plan, free.symbols), first.captured)
        except SameSizes as same:  # ends, because each time one name is removed
            if not loop.always_runs:
                return NotApplicable("NATIVE-SHAPE", f"it needs {same}, which is not checked if the loop runs no step")
            known[same.name] = same.other
        except PlanRefused as refused:
            return refused.reason


def _loop(loop: LoopView, ctx: Context, free: FreeSizes) -> Compiled:
    """Compile a Loop.

    The first state of the plan is the condition of the Loop. The body reads the condition as the constant True, because a step only
    runs if the condition is true.
    """
    body = Body(loop.body, ctx.opset, len(loop.states) + 2, free)
    condition, limit = _single(loop.condition), _single(loop.limit)
    inputs = [Input(InputKind.INITIAL, _sizes(condition), dtype=BOOL)]
    for index, state in enumerate(loop.states, 1):  # the sizes that a body declares for a state may be wrong
        inputs.append(_input(body, state.initial, state.inner, Home.OLD, index, declared=False))
    inputs.append(Input(InputKind.LIMIT, _sizes(limit), dtype=INT64))
    body.views[loop.iteration] = whole(Buffer(Home.STEP_NUMBER, 1, dtype=INT64), (1,) * (rank_of(loop.iteration) or 0))
    body.views[loop.condition_in] = body.constant(np.ones((1,) * (rank_of(loop.condition_in) or 0), np.bool_))
    translate_graph(loop.body, body)
    goes_on = _result(body, loop.condition_out)
    if goes_on.count != 1:
        raise PlanRefused("NATIVE-SHAPE", f"the condition '{loop.condition_out.name}' has {goes_on.count} elements")
    finals = [_result(body, state.next) for state in loop.states]
    stacked = [_result(body, output.inner) for output in loop.scan_outputs]
    _check_states(loop.states, finals, body)
    for output, view in zip(loop.scan_outputs, stacked, strict=True):
        if not loop.always_runs and not known_sizes(output) == static_dims(output.inner) == view.shape:
            raise PlanRefused("NATIVE-SHAPE", f"the sizes of '{output.inner.name}' are not known if the loop runs no step")
    return _planned(body, inputs, [body.reshaped(goes_on, condition), *finals], stacked, [False] * len(stacked), Form.LOOP)


def _single(value: ir.Value | None) -> tuple[int, ...]:
    """Return the shape, [] or [1], of a value that has one element. If the value is omitted, return []."""
    rank = 0 if value is None else rank_of(value)
    if rank is None or rank > 1:
        raise PlanRefused("NATIVE-SHAPE", f"the rank of '{'' if value is None else value.name}' is not known to be 0 or 1")
    return (1,) * rank


def _sizes(shape: tuple[int, ...]) -> tuple[Size, ...]:
    return tuple(map(Size, shape))


def _input(
    body: Body, outer: ir.Value, inner: ir.Value, home: Home, index: int, *, backwards: bool = False, declared: bool = True
) -> Input:
    """Describe an input of the plan, and add its view to ``body``.

    Args:
        outer: The value outside the loop.
        inner: The corresponding value in the body.
        home: ``Home.OLD`` for an initial state, ``Home.SCANNED`` for a scan input.
        index: The index of the input in the plan.
        declared: True if the sizes that the body declares for the input can be trusted.
    """
    if inner.dtype is None or inner.dtype not in NUMPY or not isinstance(inner.type, ir.TensorType):
        raise PlanRefused("NATIVE-TYPE", f"'{inner.name}' is {type_name(inner)}")
    shape = body.dims(outer, index, 1 if home == Home.SCANNED else 0, inner if declared and inner is not outer else None)
    if shape is None:
        raise PlanRefused("NATIVE-SHAPE", f"the shape of '{inner.name}' in one step is not known")
    if 0 in shape:
        raise PlanRefused("NATIVE-SHAPE", f"'{inner.name}' has no elements")
    dtype = int(inner.dtype)
    body.views[inner] = whole(Buffer(home, math.prod(shape), index, dtype=dtype), shape, truth=dtype == BOOL)
    kind = InputKind.INITIAL if home == Home.OLD else InputKind.SCANNED
    return Input(kind, _sizes(shape), backwards, dtype)


def _result(body: Body, value: ir.Value) -> View:
    """Return the view of a result of the body, stored in its declared element type."""
    view = body.view(value)
    if value.dtype not in (None, view.dtype):
        raise PlanRefused("NATIVE-TYPE", f"'{value.name}' is {type_name(value)}")
    if view.narrow is not None:
        raise PlanRefused("NATIVE-TYPE", f"'{value.name}', which the loop returns, has bytes")
    return body.as_type(view, view.dtype)


def _check_states(states: Sequence[State], finals: Sequence[View], body: Body) -> None:
    for state, view in zip(states, finals, strict=True):
        if view.shape != body.views[state.inner].shape:
            raise PlanRefused("NATIVE-SHAPE", f"the state '{state.inner.name}' changes its shape")


def _planned(
    body: Body, inputs: list[Input], finals: list[View], stacked: list[View], backwards: Sequence[bool], form: Form
) -> Compiled:
    """Complete the translation in ``body``, and return its plan.

    Args:
        inputs: The inputs of the plan. The captured values are added to this list.
        finals: For each state, the view of its value after a step.
        stacked: For each stacked output of the loop, the view of its row in one step.
        backwards: For each output, True if its rows are stacked in reverse order.
    """
    steps = fused(_read(body.steps, [*finals, *stacked]), [*finals, *stacked])
    body.steps = make_regular(steps, body)
    places = place_results(body, finals, stacked)
    steps = scheduled(computed_in_parts(body.steps, places), places)
    inputs += [
        Input(InputKind.CAPTURED, _sizes(body.views[value].shape), dtype=each.dtype) for value, each in body.captured.items()
    ]
    outputs = [Output(_sizes(view.shape), reverse, view.dtype) for view, reverse in zip(stacked, backwards, strict=True)]
    return Compiled(write(body, steps, places, inputs, outputs, form), tuple(body.captured))


def _read(steps: list[BodyStep], results: list[View]) -> list[BodyStep]:
    """Return the steps that are needed to compute ``results``, in their order."""
    needed, kept = {view.buffer for view in results}, []
    for step in reversed(steps):
        if step.target.buffer in needed:
            needed |= {source.buffer for source in step.given}
            kept.append(step)
    return kept[::-1]


def _scan(loop: ScanView, ctx: Context, free: FreeSizes, beside: Around) -> Compiled:
    axes = [*(scan.axis for scan in loop.scan_inputs), *(output.axis for output in loop.scan_outputs)]
    if loop.batched or any(axes):
        raise PlanRefused("NATIVE-FORM", "the loop is batched or scans along an axis other than 0")
    body = Body(loop.body, ctx.opset, len(loop.states) + len(beside.scans), free)
    inputs = [_input(body, state.initial, state.inner, Home.OLD, index) for index, state in enumerate(loop.states)]
    for index, scan in enumerate(beside.scans, len(loop.states)):
        inputs.append(_input(body, scan.outer, scan.inner, Home.SCANNED, index, backwards=scan.reverse))
    if beside.nodes:
        body.views |= {scan.outer: body.views[scan.inner] for scan in beside.scans}
    _translate_beside(beside.before, body)
    body.views |= {scan.inner: body.views[scan.outer] for scan in loop.scan_inputs if scan not in beside.scans}
    translate_graph(loop.body, body)
    if beside.after:
        body.views |= {each.outer: body.view(each.inner) for each in loop.scan_outputs if each.outer is not None}
    _translate_beside(beside.after, body)
    finals = [_result(body, state.next) for state in loop.states]
    stacked = [_result(body, output.inner) for output in beside.stacked]
    _check_states(loop.states, finals, body)
    return _planned(body, inputs, finals, stacked, [part.reverse for part in beside.stacked], Form.SCAN)


def _translate_beside(nodes: Sequence[ir.Node], body: Body) -> None:
    """Translate ``nodes``, which come before or after the loop and read and write stacks.

    The plan computes one row of each stack in a step of the loop. So in ``body``, the view of a stack is the view of one row.
    """
    for node in nodes:
        if node.op_type == "Unsqueeze" and node.inputs[0] is not None:
            view = body.view(node.inputs[0])
            shape = list(view.shape)
            for axis in unsqueezed(node):
                shape.insert(axis - 1, 1)
            body.views[node.outputs[0]] = body.reshaped(view, shape)
        else:
            (body.views[node.outputs[0]],) = translate(node, body)
