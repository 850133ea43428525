"""Compiles a loop into a loop plan, or returns the reason why that is impossible."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.shapes.sizes_without_steps import known_sizes
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.type_names import type_name
from rewrites.graph.values import rank_of, static_dims
from rewrites.loops import Loop, LoopView, ScanView, State
from rewrites.native.around import SurroundingNodes, none_around, unsqueezed_axes
from rewrites.native.body import Body, BodyStep
from rewrites.native.free_sizes import SAMPLES, EqualSizesRequired, FreeSizes, merge_samples
from rewrites.native.fusing import fuse_steps
from rewrites.native.growing import add_growing_state, find_growth
from rewrites.native.limits import check_limits
from rewrites.native.memory import assign_result_memory, write_to_copy_targets
from rewrites.native.nested import translate_graph
from rewrites.native.operations import BOOL, INT64, NUMPY
from rewrites.native.plan import Form, Input, InputKind, Output, Plan, PlanRefused, Size
from rewrites.native.schedule import schedule_steps
from rewrites.native.translators import translate
from rewrites.native.views import Buffer, Origin, View, view_of_buffer
from rewrites.native.walks import copy_irregular_operands
from rewrites.native.writing import write

__all__ = ["CompiledLoop", "compile_loop"]


@dataclass(frozen=True)
class CompiledLoop:
    """A plan, the outer values that are its last inputs (``captured``), and notes for the report."""

    plan: Plan
    captured: tuple[ir.Value, ...]
    notes: tuple[str, ...] = ()


def compile_loop(loop: Loop, ctx: Context, around: SurroundingNodes | None = None) -> CompiledLoop | NotApplicable:
    """Return the plan of ``loop`` and of the nodes ``around`` it, or the reason why the loop has no plan."""

    def compile_sample(free: FreeSizes) -> CompiledLoop:
        return (
            _plan_loop(loop, ctx, free) if isinstance(loop, LoopView) else _plan_scan(loop, ctx, free, around or none_around(loop))
        )

    equalities: dict[str, str | int] = {}
    while True:
        try:
            first = compile_sample(free := FreeSizes(SAMPLES[0], equalities))
            check_limits(first.plan)
            if not free.symbols:
                return first
            second = compile_sample(FreeSizes(SAMPLES[1], equalities))
            return CompiledLoop(merge_samples(first.plan, second.plan, free.symbols), first.captured)
        except EqualSizesRequired as equality:  # ends, because each time one name is removed
            if not loop.always_runs:
                return NotApplicable("NATIVE-SHAPE", f"it needs {equality}, which is not checked if the loop runs no step")
            equalities[equality.name] = equality.other
        except PlanRefused as error:
            return error.reason


def _plan_loop(loop: LoopView, ctx: Context, free: FreeSizes) -> CompiledLoop:
    """Return the plan of a Loop.

    The first state of the plan is the condition of the Loop. The body reads the condition as the constant True, because a step only
    runs if the condition is true.
    """
    body = Body(loop.body, ctx.opset, len(loop.states) + 2, free)
    condition, limit = _one_element_shape(loop.condition), _one_element_shape(loop.limit)
    inputs = [Input(InputKind.INITIAL, _sizes(condition), dtype=BOOL)]
    growth = find_growth(loop, ctx)
    for index, state in enumerate(loop.states, 1):  # the sizes that a body declares for a state may be wrong
        if state in growth:
            inputs.append(add_growing_state(body, state, index, growth[state]))
        else:
            inputs.append(_add_input(body, state.initial, state.inner, Origin.OLD, index, use_body_sizes=False))
    inputs.append(Input(InputKind.LIMIT, _sizes(limit), dtype=INT64))
    body.views[loop.iteration] = view_of_buffer(Buffer(Origin.STEP_NUMBER, 1, dtype=INT64), (1,) * (rank_of(loop.iteration) or 0))
    body.views[loop.condition_in] = body.constant(np.ones((1,) * (rank_of(loop.condition_in) or 0), np.bool_))
    translate_graph(loop.body, body)
    goes_on = _result_view(body, loop.condition_out)
    if goes_on.count != 1:
        raise PlanRefused("NATIVE-SHAPE", f"the condition '{loop.condition_out.name}' has {goes_on.count} elements")
    finals = [_result_view(body, state.next) for state in loop.states]
    stacked = [_result_view(body, output.inner) for output in loop.scan_outputs]
    _check_states(loop.states, finals, body)
    for output, view in zip(loop.scan_outputs, stacked, strict=True):
        if free.depends_on_growing(view.shape):
            raise PlanRefused("NATIVE-SHAPE", f"the sizes of '{output.inner.name}' change from step to step")
        if not loop.always_runs and not known_sizes(output) == static_dims(output.inner) == view.shape:
            raise PlanRefused("NATIVE-SHAPE", f"the sizes of '{output.inner.name}' are not known if the loop runs no step")
    return _finish_plan(body, inputs, [body.reshaped(goes_on, condition), *finals], stacked, [False] * len(stacked), Form.LOOP)


def _one_element_shape(value: ir.Value | None) -> tuple[int, ...]:
    """Return the shape of a value of one element: () or (1,). Return () if the value is omitted."""
    rank = 0 if value is None else rank_of(value)
    if rank is None or rank > 1:
        raise PlanRefused("NATIVE-SHAPE", f"the rank of '{'' if value is None else value.name}' is not known to be 0 or 1")
    return (1,) * rank


def _sizes(shape: tuple[int, ...]) -> tuple[Size, ...]:
    return tuple(map(Size, shape))


def _add_input(
    body: Body,
    outer: ir.Value,
    inner: ir.Value,
    origin: Origin,
    index: int,
    *,
    backwards: bool = False,
    use_body_sizes: bool = True,
) -> Input:
    """Describe an input of the plan, and add its view to ``body``.

    Args:
        outer: The value outside the loop.
        inner: The body value that holds the input in a step.
        origin: ``Origin.OLD`` for an initial state, ``Origin.SCANNED`` for a scan input.
        index: The index of the input in the plan.
        use_body_sizes: False if the sizes that the body declares for the input may be wrong.
    """
    if inner.dtype is None or inner.dtype not in NUMPY or not isinstance(inner.type, ir.TensorType):
        raise PlanRefused("NATIVE-TYPE", f"'{inner.name}' is {type_name(inner.dtype)}")
    shape = body.dims(outer, index, 1 if origin == Origin.SCANNED else 0, inner if use_body_sizes and inner is not outer else None)
    if shape is None:
        raise PlanRefused("NATIVE-SHAPE", f"the shape of '{inner.name}' in one step is not known")
    if 0 in shape:
        raise PlanRefused("NATIVE-SHAPE", f"'{inner.name}' has no elements")
    dtype = int(inner.dtype)
    body.views[inner] = view_of_buffer(Buffer(origin, math.prod(shape), index, dtype=dtype), shape, truth=dtype == BOOL)
    kind = InputKind.INITIAL if origin == Origin.OLD else InputKind.SCANNED
    return Input(kind, _sizes(shape), backwards, dtype)


def _result_view(body: Body, value: ir.Value) -> View:
    """Return the view of a result of the body. Raise PlanRefused if its type is not the declared one."""
    view = body.view(value)
    if value.dtype not in (None, view.dtype):
        raise PlanRefused("NATIVE-TYPE", f"'{value.name}' is {type_name(value.dtype)}")
    if view.narrow is not None:
        raise PlanRefused("NATIVE-TYPE", f"'{value.name}', which the loop returns, has bytes")
    return body.as_type(view, view.dtype)


def _check_states(states: Sequence[State], finals: Sequence[View], body: Body) -> None:
    grown_shapes = {state.index: state.new.shape for state in body.growing.values()}
    for state, view in zip(states, finals, strict=True):
        old = body.views[state.inner]
        if view.shape != grown_shapes.get(old.buffer.index, old.shape):
            raise PlanRefused("NATIVE-SHAPE", f"the state '{state.inner.name}' changes its shape")


def _finish_plan(
    body: Body, inputs: list[Input], finals: list[View], stacked: list[View], backwards: Sequence[bool], form: Form
) -> CompiledLoop:
    """Order the steps of ``body``, assign their memory, and return the plan.

    Args:
        inputs: The inputs of the plan. The captured values are added to this list.
        finals: For each state, the view of its value after a step.
        stacked: For each stacked output of the loop, the view of its row in one step.
        backwards: For each output, True if its rows are stacked in reverse order.
    """
    steps = fuse_steps(_needed_steps(body.steps, [*finals, *stacked]), [*finals, *stacked])
    body.steps = copy_irregular_operands(steps, body)
    memory = assign_result_memory(body, finals, stacked)
    steps = schedule_steps(write_to_copy_targets(body.steps, memory), memory)
    inputs += [
        Input(InputKind.CAPTURED, _sizes(body.views[value].shape), dtype=buffer.dtype) for value, buffer in body.captured.items()
    ]
    outputs = [Output(_sizes(view.shape), reverse, view.dtype) for view, reverse in zip(stacked, backwards, strict=True)]
    return CompiledLoop(write(body, steps, memory, inputs, outputs, form), tuple(body.captured))


def _needed_steps(steps: list[BodyStep], results: list[View]) -> list[BodyStep]:
    """Return those of ``steps`` that ``results`` need, in the same order."""
    needed, kept = {view.buffer for view in results}, []
    for step in reversed(steps):
        if step.target.buffer in needed:
            needed |= {source.buffer for source in step.operands}
            kept.append(step)
    return kept[::-1]


def _plan_scan(loop: ScanView, ctx: Context, free: FreeSizes, around: SurroundingNodes) -> CompiledLoop:
    axes = [*(scan.axis for scan in loop.scan_inputs), *(output.axis for output in loop.scan_outputs)]
    if loop.batched or any(axes):
        raise PlanRefused("NATIVE-FORM", "the loop is batched or scans along an axis other than 0")
    body = Body(loop.body, ctx.opset, len(loop.states) + len(around.scans), free)
    inputs = [_add_input(body, state.initial, state.inner, Origin.OLD, index) for index, state in enumerate(loop.states)]
    for index, scan in enumerate(around.scans, len(loop.states)):
        inputs.append(_add_input(body, scan.outer, scan.inner, Origin.SCANNED, index, backwards=scan.reverse))
    if around.nodes:
        body.views |= {scan.outer: body.views[scan.inner] for scan in around.scans}
    _translate_surrounding(around.before, body)
    body.views |= {scan.inner: body.views[scan.outer] for scan in loop.scan_inputs if scan not in around.scans}
    translate_graph(loop.body, body)
    if around.after:
        body.views |= {each.outer: body.view(each.inner) for each in loop.scan_outputs if each.outer is not None}
    _translate_surrounding(around.after, body)
    finals = [_result_view(body, state.next) for state in loop.states]
    stacked = [_result_view(body, output.inner) for output in around.stacked]
    _check_states(loop.states, finals, body)
    return _finish_plan(body, inputs, finals, stacked, [part.reverse for part in around.stacked], Form.SCAN)


def _translate_surrounding(nodes: Sequence[ir.Node], body: Body) -> None:
    """Add the steps of ``nodes``, which come before or after the loop and read and write stacks.

    Each step of the loop computes one row of each stack. So ``body.views`` maps a stack to the view of one row.
    """
    for node in nodes:
        if node.op_type == "Unsqueeze" and node.inputs[0] is not None:
            view = body.view(node.inputs[0])
            shape = list(view.shape)
            for axis in unsqueezed_axes(node):
                shape.insert(axis - 1, 1)
            body.views[node.outputs[0]] = body.reshaped(view, shape)
        else:
            (body.views[node.outputs[0]],) = translate(node, body)
