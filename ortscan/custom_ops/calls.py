"""From the attribute of a call to what it does: read and prepared once, then run with arrays."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ortscan.custom_ops.bodies import prepared_body
from ortscan.custom_ops.memory import room_for_results
from ortscan.custom_ops.ports import arrays_of, slots_of
from ortscan.custom_ops.scan import ScanPlan, run_scan
from ortscan.errors import UnsupportedModel
from rewrites.python_ops.packed_model import unpack
from rewrites.python_ops.wire import Spec, parse_spec

__all__ = ["Runner", "run_call"]

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
