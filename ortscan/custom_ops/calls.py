"""From the attribute of a call to what it does: read and prepared once, then run with arrays.

A Scan as a Python loop over time, for what onnxruntime's own does not run.

By the operator's text: a scan over nothing leaves its states as they were and stacks nothing, and a state may change its shape.

Works round ORT-SCAN-CHANGING-STATE, ORT-SCAN-NO-STEPS and ONNX-REFERENCE-SCAN.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ortscan.custom_ops.bodies import prepared_body
from ortscan.custom_ops.ending import not_terminated
from ortscan.custom_ops.runs import room_for_results
from ortscan.custom_ops.slots import arrays_of, dtype_of, slots_of
from ortscan.errors import UnsupportedModel
from rewrites.python_ops.wire import Spec, parse_spec, unpack

__all__ = ["Runner", "ScanPlan", "run_call", "run_scan"]

if TYPE_CHECKING:
    from typing_extensions import Self


Body = Callable[[Sequence[np.ndarray]], Sequence[Any]]


@dataclass(frozen=True)
class ScanPlan:
    """The parts of a Scan: how many states and scanned inputs, along which axes, which way, and what one step's results are.

    ``elements``: the type and sizes (0 where not known) of one step of each stacked result; needed where there is no step.
    """

    states: int
    axes: tuple[int, ...]
    reverse: tuple[bool, ...]
    out_axes: tuple[int, ...]
    out_reverse: tuple[bool, ...]
    elements: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def read(cls, payload: Mapping[str, Any]) -> "Self":
        """Read it from the payload of a call."""
        return cls(
            payload["states"],
            tuple(payload["axes"]),
            tuple(map(bool, payload["reverse"])),
            tuple(payload["out_axes"]),
            tuple(map(bool, payload["out_reverse"])),
            tuple((kind, tuple(dims)) for kind, dims in payload["elements"]),
        )


def run_scan(plan: ScanPlan, body: Body, values: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run all steps; ``values`` are the initial states, the scanned inputs, and what the body reads from outside.

    Raises ValueError where the scanned inputs differ in length, or what is to be stacked differs in shape.
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
        return [*states, *_nothing(plan, body, states, streams, captured)]
    for t in range(steps):
        not_terminated()
        results = body([*states, *(stream[t, ...] for stream in streams), *captured])
        states = list(results[: plan.states])
        for stack, value in zip(stacks, results[plan.states :], strict=True):
            stack.append(value)
    return [*states, *(_stacked(stack, plan, number) for number, stack in enumerate(stacks))]


def _stacked(steps: list[np.ndarray], plan: ScanPlan, number: int) -> np.ndarray:
    return np.stack(steps[:: -1 if plan.out_reverse[number] else 1], plan.out_axes[number])


def _nothing(
    plan: ScanPlan, body: Body, states: Sequence[np.ndarray], streams: Sequence[np.ndarray], captured: Sequence[np.ndarray]
) -> Iterator[np.ndarray]:
    """Return the stacks of no step. A step that is made up tells their sizes; where there can be none, what is declared does."""
    shapes = [dims for _, dims in plan.elements]
    with contextlib.suppress(Exception):
        made_up = body([*states, *(np.zeros(stream.shape[1:], stream.dtype) for stream in streams), *captured])
        shapes = [np.shape(value) for value in made_up[plan.states :]]
    for (kind, _), axis, dims in zip(plan.elements, plan.out_axes, shapes, strict=True):
        yield np.empty([*dims[:axis], 0, *dims[axis:]], dtype_of(kind))


Runner = Callable[[Sequence[np.ndarray]], Sequence[object]]

_MOST_PREPARED = 256


def run_call(text: str, slots: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the call that ``text`` describes on what is in ``slots``, and return the slots it returns. Raises whatever goes wrong."""
    spec, run = _prepared(text)
    results = slots_of(run(_inputs(slots, spec)), spec.outputs)
    room_for_results(results)
    return results


def _inputs(slots: Sequence[np.ndarray], spec: Spec) -> list[np.ndarray]:
    try:
        return arrays_of(slots, spec.inputs)
    except (ValueError, StopIteration) as error:
        raise UnsupportedModel(f"a call of Python is given other values than it says: {str(error) or 'too few'}.") from error


@functools.lru_cache(_MOST_PREPARED)
def _prepared(text: str) -> tuple[Spec, Runner]:
    spec = parse_spec(text)
    try:
        return spec, _runner_of(spec)
    except (LookupError, TypeError, ValueError) as error:
        raise UnsupportedModel(f"a call of Python cannot be read: {type(error).__name__}: {error}.") from error


def _runner_of(spec: Spec) -> Callable[[Sequence[np.ndarray]], Sequence[object]]:
    """Prepare what ``spec`` describes. Raises OrtscanError for what this version does not know."""
    if spec.what not in ("graph", "scan"):
        raise UnsupportedModel(f"the model calls '{spec.what}' in Python, which this version of ortscan does not know")
    body = prepared_body(unpack(spec.payload["model"]))
    if spec.what == "graph":
        return body
    plan = ScanPlan.read(spec.payload)
    return lambda values: run_scan(plan, body, values)
