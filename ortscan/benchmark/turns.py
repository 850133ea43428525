"""Times several models in turns, so that all meet the same state of the machine."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["Clock", "Turns", "clock_for", "time_in_turns"]

_TURN = 0.002
"""Seconds that a model runs in a row, if one run does not take longer: as in use it then finds its own data in the caches."""
_FINE = 1e-6

Turns = list[list[float]]
"""The seconds of each run, a list a turn."""


class Clock(NamedTuple):
    """``now`` tells the seconds, and so does ``own``, which need not go on while other processes have the processor."""

    now: Callable[[], float]
    own: Callable[[], float]


def clock_for(threads: int) -> Clock:
    """Return the clock for sessions of so many threads: of one, the time of this thread counts, where the system tells it.

    On a busy machine a run of a millisecond is interrupted far more often than one of a microsecond, which would seem a gain.
    """
    is_told = threads == 1 and time.get_clock_info("thread_time").resolution <= _FINE
    return Clock(time.perf_counter, time.thread_time if is_told else time.perf_counter)


def time_in_turns(runs: Sequence[Callable[[], object]], seconds: float, clock: Clock) -> list[Turns]:
    """Return what each of ``runs`` took in its turns, as many for each and one at least, in about ``seconds`` in all.

    Each goes first and last as often. The first run of a turn is not counted where it can be spared.
    """
    taken: list[Turns] = [[] for _ in runs]
    order = list(range(len(runs)))
    with _without_collector():
        end = clock.now() + seconds
        while True:
            for place in order:
                taken[place].append(_turn(runs[place], clock))
            order.reverse()
            if clock.now() >= end:
                return taken


def _turn(run: Callable[[], object], clock: Clock) -> list[float]:
    own = clock.own
    first = start = own()
    run()
    now = own()
    taken = [now - start]
    while now - first < _TURN:
        start = own()
        run()
        now = own()
        taken.append(now - start)
    return taken[1:] or taken


@contextmanager
def _without_collector() -> Iterator[None]:
    """Let no collection of garbage fall into one's turn."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
