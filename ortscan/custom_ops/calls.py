"""From the attribute of a call to what it does: read and prepared once, then run with arrays."""

import functools
from collections.abc import Callable, Sequence

import numpy as np

from ortscan.custom_ops.ports import arrays_of, slots_of
from ortscan.custom_ops.running import runner_of
from rewrites.python_ops.wire import Spec, parse_spec

__all__ = ["Runner", "run_call"]

Runner = Callable[[Sequence[np.ndarray]], Sequence[object]]

_MOST_PREPARED = 256


def run_call(text: str, slots: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the call that ``text`` describes on what is in ``slots``, and give the slots it returns. Raises whatever goes wrong."""
    spec, run = _prepared(text)
    return slots_of(run(arrays_of(slots, spec.inputs)), spec.outputs)


@functools.lru_cache(_MOST_PREPARED)
def _prepared(text: str) -> tuple[Spec, Runner]:
    spec = parse_spec(text)
    return spec, runner_of(spec)
