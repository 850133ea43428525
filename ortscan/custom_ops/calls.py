"""Run a call of the Python op: parse its attribute once, then run it on arrays.

A Scan that onnxruntime does not run becomes a loop in Python. The loop follows the specification of the operator in two cases in
which onnxruntime does not: a Scan over zero steps returns its initial states and empty stacks, and a state may change its shape.

Works around ORT-SCAN-CHANGING-STATE, ORT-SCAN-NO-STEPS and ONNX-REFERENCE-SCAN.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ortscan.custom_ops.bodies import prepared_body
from ortscan.custom_ops.ending import raise_if_terminated
from ortscan.custom_ops.runs import check_memory_for_results
from ortscan.custom_ops.slots import arrays_of, dtype_of, slots_of
from ortscan.errors import UnsupportedModel
from rewrites.python_ops.wire import CallSpec, parse_spec, unpack

__all__ = ["Runner", "ScanPlan", "run_call", "run_scan"]

if TYPE_CHECKING:
    from typing_extensions import Self


Body = Callable[[Sequence[np.ndarray]], Sequence[Any]]


@dataclass(frozen=True)
class ScanPlan:
    """The layout of a Scan.

    Attributes:
        states: the number of states.
        axes: the axis of each scanned input.
        reverse: True for each scanned input that is read backwards.
        out_axes: the axis of each stacked result.
        out_reverse: True for each stacked result that is stacked backwards.
        elements: for each stacked result, the type and the sizes of one step (0 if unknown). They are needed if the number of
            steps is 0.
    """

    states: int
    axes: tuple[int, ...]
    reverse: tuple[bool, ...]
    out_axes: tuple[int, ...]
    out_reverse: tuple[bool, ...]
    elements: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def read(cls, payload: Mapping[str, Any]) -> "Self":
        """Return the layout in the payload of a call."""
        return cls(
            payload["states"],
            tuple(payload["axes"]),
            tuple(map(bool, payload["reverse"])),
            tuple(payload["out_axes"]),
            tuple(map(bool, payload["out_reverse"])),
            tuple((kind, tuple(dims)) for kind, dims in payload["elements"]),
        )


def run_scan(plan: ScanPlan, body: Body, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run all steps of a Scan.

    ``values`` are the initial states, the scanned inputs and the captured values, in this order.

    Raise ValueError if scanned inputs differ in length or the steps of a stack differ in shape.
    """
    scanned = plan.states + len(plan.axes)
    states, captured = list(values[: plan.states]), list(values[scanned:])
    streams = [
        np.moveaxis(value, axis, 0)[:: -1 if reverse else 1]
        for value, axis, reverse in zip(values[plan.states : scanned], plan.axes, plan.reverse, strict=True)
    ]
    lengths = {len(stream) for stream in streams}
    if len(lengths) > 1:
        raise ValueError(f"the scanned inputs have different lengths: {', '.join(map(str, sorted(lengths)))}")
    stacks: list[list[np.ndarray]] = [[] for _ in plan.elements]
    steps = lengths.pop()
    if steps == 0:
        return [*states, *_empty_stacks(plan, body, states, streams, captured)]
    for t in range(steps):
        raise_if_terminated()
        results = body([*states, *(stream[t, ...] for stream in streams), *captured])
        states = list(results[: plan.states])
        for stack, value in zip(stacks, results[plan.states :], strict=True):
            stack.append(value)
    return [*states, *(_stacked(stack, plan, number) for number, stack in enumerate(stacks))]


def _stacked(steps: list[np.ndarray], plan: ScanPlan, number: int) -> np.ndarray:
    return np.stack(steps[:: -1 if plan.out_reverse[number] else 1], plan.out_axes[number])


def _empty_stacks(
    plan: ScanPlan, body: Body, states: Sequence[np.ndarray], streams: Sequence[np.ndarray], captured: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    """Yield the stacked results of a Scan whose number of steps is 0.

    The step axis of each stack has the size 0. To find the other sizes, the body runs once on the initial states and on zeros for
    the scanned inputs. If the body fails, the declared sizes are used.
    """
    shapes = [dims for _, dims in plan.elements]
    with contextlib.suppress(Exception):
        results = body([*states, *(np.zeros(stream.shape[1:], stream.dtype) for stream in streams), *captured])
        shapes = [np.shape(value) for value in results[plan.states :]]
    for (kind, _), axis, dims in zip(plan.elements, plan.out_axes, shapes, strict=True):
        yield np.empty([*dims[:axis], 0, *dims[axis:]], dtype_of(kind))


Runner = Callable[[Sequence[np.ndarray]], Sequence[object]]

_MOST_PREPARED = 256


def run_call(text: str, slots: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the call that ``text``, the attribute of the op, describes.

    ``slots`` are the input tensors of the op, which hold the inputs of the call. Return the output tensors of the op.
    """
    spec, run = _prepared(text)
    results = slots_of(run(_inputs(slots, spec)), spec.outputs)
    check_memory_for_results(results)
    return results


def _inputs(slots: Sequence[np.ndarray], spec: CallSpec) -> list[np.ndarray]:
    try:
        return arrays_of(slots, spec.inputs)
    except (ValueError, StopIteration) as error:
        raise UnsupportedModel(f"the inputs of a Python call do not fit its description: {str(error) or 'too few'}.") from error


@functools.lru_cache(_MOST_PREPARED)
def _prepared(text: str) -> tuple[CallSpec, Runner]:
    spec = parse_spec(text)
    try:
        return spec, _runner_of(spec)
    except (LookupError, TypeError, ValueError) as error:
        raise UnsupportedModel(f"a Python call has an invalid description: {type(error).__name__}: {error}.") from error


def _runner_of(spec: CallSpec) -> Callable[[Sequence[np.ndarray]], Sequence[object]]:
    """Return a function that computes the results of a call from the inputs of the call.

    Raise UnsupportedModel if this version of ortscan does not know the kind of the call, ``spec.what``.
    """
    if spec.what not in ("graph", "scan"):
        raise UnsupportedModel(f"the model calls '{spec.what}' in Python, which this version of ortscan does not know")
    body = prepared_body(unpack(spec.payload["model"]))
    if spec.what == "graph":
        return body
    plan = ScanPlan.read(spec.payload)
    return lambda values: run_scan(plan, body, values)
