"""Compiles the body of a Scan in normal form into a loop plan; says why where it cannot."""

import math
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.values import const_array
from rewrites.loops import ScanView
from rewrites.native.body import Body, Step
from rewrites.native.free_sizes import SAMPLES, FreeSizes, joined
from rewrites.native.fusing import fused
from rewrites.native.in_parts import computed_in_parts
from rewrites.native.limits import check_limits
from rewrites.native.places import place_results
from rewrites.native.plan import Input, InputKind, Output, Plan, Size
from rewrites.native.refused import Refused
from rewrites.native.schedule import scheduled
from rewrites.native.translators import translate
from rewrites.native.views import Buffer, Home, View, whole
from rewrites.native.walks import make_regular
from rewrites.native.writing import write

__all__ = ["Compiled", "compile_loop"]


@dataclass(frozen=True)
class Compiled:
    """``captured``: the outer values that the plan reads beside initial states and scanned inputs, in the order of its inputs."""

    plan: Plan
    captured: tuple[ir.Value, ...]
    notes: tuple[str, ...] = ()


def compile_loop(loop: ScanView, ctx: Context) -> Compiled | NotApplicable:
    """Return the plan of a loop, or why there is none."""
    try:
        first = _compiled(loop, ctx, free := FreeSizes(SAMPLES[0]))
        check_limits(first.plan)
        if not free.symbols:
            return first
        second = _compiled(loop, ctx, FreeSizes(SAMPLES[1]))
        return Compiled(joined(first.plan, second.plan, free.symbols), first.captured)
    except Refused as refused:
        return refused.reason


def _compiled(loop: ScanView, ctx: Context, free: FreeSizes) -> Compiled:
    axes = [*(scan.axis for scan in loop.scan_inputs), *(output.axis for output in loop.scan_outputs)]
    if loop.batched or any(axes):
        raise Refused("NATIVE-FORM", "the loop is batched or scans along another axis than the first")
    body = Body(loop.body, ctx.opset, len(loop.states) + len(loop.scan_inputs), free)
    inputs = [_input(body, state.initial, state.inner, Home.OLD, index) for index, state in enumerate(loop.states)]
    for index, scan in enumerate(loop.scan_inputs, len(loop.states)):
        inputs.append(_input(body, scan.outer, scan.inner, Home.SCANNED, index, backwards=scan.reverse))
    _translate(loop.body, body)
    finals = [body.view(state.next) for state in loop.states]
    stacked = [body.view(output.inner) for output in loop.scan_outputs]
    for value, view in zip(loop.body.outputs, [*finals, *stacked], strict=True):
        _check_port(value, view)
    for state, view in zip(loop.states, finals, strict=True):
        if view.shape != body.views[state.inner].shape:
            raise Refused("NATIVE-SHAPE", f"the state '{state.inner.name}' changes its shape")
    steps = fused(_read(body.steps, [*finals, *stacked]), [*finals, *stacked])
    body.steps = make_regular(steps, body)
    places = place_results(body, finals, stacked)
    steps = scheduled(computed_in_parts(body.steps, places), places)
    inputs += [Input(InputKind.CAPTURED, _sizes(body.views[value].shape)) for value in body.captured]
    outputs = [Output(_sizes(view.shape), part.reverse) for view, part in zip(stacked, loop.scan_outputs, strict=True)]
    return Compiled(write(body, steps, places, inputs, outputs), tuple(body.captured))


def _input(body: Body, outer: ir.Value, inner: ir.Value, home: Home, index: int, *, backwards: bool = False) -> Input:
    if inner.dtype != ir.DataType.FLOAT:
        name = inner.dtype.name if inner.dtype is not None else "of a type that is not known"
        raise Refused("NATIVE-TYPE", f"'{inner.name}' is {name}")
    shape = body.dims(outer, index, 1 if home == Home.SCANNED else 0, inner)
    if shape is None:
        raise Refused("NATIVE-SHAPE", f"the shape of '{inner.name}' in one step is not known")
    if 0 in shape:
        raise Refused("NATIVE-SHAPE", f"'{inner.name}' has no elements")
    body.views[inner] = whole(Buffer(home, math.prod(shape), index), shape)
    kind = InputKind.INITIAL if home == Home.OLD else InputKind.SCANNED
    return Input(kind, _sizes(shape), backwards)


def _translate(graph: ir.Graph, body: Body) -> None:
    for node in graph:
        if all(const_array(value) is not None for value in node.outputs):
            continue
        for value, view in zip(node.outputs, translate(node, body), strict=False):
            known = list(view.shape) if value.shape is None else value.shape.dims
            agree = len(known) == len(view.shape) and all(
                not isinstance(dim, int) or dim == size for dim, size in zip(known, view.shape, strict=True)
            )
            if 0 in view.shape or not agree:
                raise Refused("NATIVE-SHAPE", f"'{value.name}' has the shape {list(view.shape)}, known is {value.shape}")
            if value.dtype is not None and value.dtype != (ir.DataType.BOOL if view.truth else ir.DataType.FLOAT):
                raise Refused("NATIVE-TYPE", f"'{value.name}' is {value.dtype.name}")
            body.views[value] = view


def _check_port(value: ir.Value, view: View) -> None:
    if view.truth or value.dtype not in (ir.DataType.FLOAT, None):
        raise Refused("NATIVE-TYPE", f"'{value.name}' is {'BOOL' if value.dtype is None else value.dtype.name}")


def _read(steps: list[Step], results: list[View]) -> list[Step]:
    """Return the steps whose results are read."""
    needed, kept = {view.buffer for view in results}, []
    for step in reversed(steps):
        if step.target.buffer in needed:
            needed |= {source.buffer for source in step.given}
            kept.append(step)
    return kept[::-1]


def _sizes(shape: tuple[int, ...]) -> tuple[Size, ...]:
    return tuple(map(Size, shape))
