"""Rounds of timing.

Each round creates a session of every model and times these sessions alternately, so that all run under the same load.
"""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

from ortscan.benchmark.result import Timing
from ortscan.report.ratio import LEAST_ROUNDS

__all__ = ["Clock", "Loaded", "Records", "clock_for", "time_in_turns", "timed_in_rounds"]

_TURN = 0.002
"""The minimum seconds of a turn, which has at least one run. The runs of a turn find their data in the caches, as in production."""
_FINE = 1e-6

Turns = list[list[float]]
"""The seconds of each run, in a list for each turn."""


class Clock(NamedTuple):
    """Two clocks in seconds.

    ``now`` is the wall clock. ``own`` may count only the time that this thread runs.
    """

    now: Callable[[], float]
    own: Callable[[], float]


def clock_for(threads: int) -> Clock:
    """Return the clock for sessions with ``threads`` threads.

    For one thread, the clock counts CPU time if the system measures CPU time precisely. Wall time would exaggerate a gain, because
    on a busy machine long runs are interrupted more often than short ones.
    """
    is_precise = threads == 1 and time.get_clock_info("thread_time").resolution <= _FINE
    return Clock(time.perf_counter, time.thread_time if is_precise else time.perf_counter)


def time_in_turns(runs: Sequence[Callable[[], object]], seconds: float, clock: Clock) -> list[Turns]:
    """Call the functions ``runs`` alternately for about ``seconds``, and time the calls.

    In a turn, one function is called repeatedly for a short time. If a turn has several calls, the first is not timed. All
    functions get the same number of turns, at least one. The order of the functions is reversed after each pass over them.

    Returns:
        For each function, a list of its turns. Each turn is a list with the seconds of its timed calls.
    """
    timed: list[Turns] = [[] for _ in runs]
    order = list(range(len(runs)))
    with _without_collector():
        end = clock.now() + seconds
        while True:
            for number in order:
                timed[number].append(_turn(runs[number], clock))
            order.reverse()
            if clock.now() >= end:
                return timed


def _turn(run: Callable[[], object], clock: Clock) -> list[float]:
    own = clock.own
    first = start = own()
    run()
    now = own()
    timed = [now - start]
    while now - first < _TURN:
        start = own()
        run()
        now = own()
        timed.append(now - start)
    return timed[1:] or timed


@contextmanager
def _without_collector() -> Iterator[None]:
    """Disable garbage collection during the block."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_LEAST = 2
"""The number of rounds that always run. Noise can only be measured with at least two."""
_PATIENCE = 4.0
"""The rounds that a confidence interval needs may take this multiple of the requested time."""
_SLACK = 1.5
"""Further rounds may take this multiple of the requested time, because each turn has at least one run."""


class Loaded(Protocol):
    """A session to time."""

    load_seconds: float

    def run(self, feed: Mapping[str, Any]) -> object:
        """Run once."""


@dataclass
class Records:
    """The times of a model.

    ``loads`` has a value for each round. The other lists have a list for each size, with a value for each round.

    Attributes:
        loads: the seconds to create a session.
        medians: the median seconds of a run.
        bests: the seconds of the fastest run.
        gains: the speed relative to the first model. Each turn of this model is compared with the turn of the first model in the
            same pass, because the load of the machine changes. The gain is the median of these ratios.
    """

    loads: list[float]
    medians: list[list[float]]
    bests: list[list[float]]
    gains: list[list[float]]

    def timing(self, number: int) -> Timing:
        """Return the times of the model at size ``number``."""
        medians = self.medians[number]
        return Timing(statistics.median(medians), min(self.bests[number]), medians, self.gains[number])


def timed_in_rounds(
    load: Sequence[Callable[[], Loaded]],
    feeds: Sequence[Mapping[str, Any]],
    rounds: int,
    seconds: float,
    clock: Clock,
    progress: Callable[[int, int], None] | None = None,
) -> list[Records]:
    """Time sessions in rounds and return the records of each model.

    Args:
        load: functions that create the sessions.
        feeds: the inputs at each choice of sizes.
        rounds: the number of rounds. Fewer rounds are run if the rounds take much longer than ``seconds``.
        seconds: the time for all rounds.
        clock: the clock of ``clock_for``.
        progress: a function that is called with the number of finished rounds and the number of all rounds.
    """
    records = [Records([], [[] for _ in feeds], [[] for _ in feeds], [[] for _ in feeds]) for _ in load]
    start = clock.now()
    for done in range(rounds):
        spent = clock.now() - start
        if done >= _LEAST and spent > seconds * (_SLACK if done >= LEAST_ROUNDS else _PATIENCE):
            break
        each = max(0.0, seconds - spent) / (rounds - done) / len(feeds)
        _one_round(load, feeds, each, clock, records, first=done % len(load))
        if progress is not None:
            progress(done + 1, rounds)
    return records


def _one_round(
    load: Sequence[Callable[[], Loaded]],
    feeds: Sequence[Mapping[str, Any]],
    seconds: float,
    clock: Clock,
    records: Sequence[Records],
    first: int,
) -> None:
    order = [*range(first, len(load)), *range(first)]
    sessions = [load[number]() for number in order]
    for number, session in zip(order, sessions, strict=True):
        records[number].loads.append(session.load_seconds)
    for number, feed in enumerate(feeds):
        runs = [partial(session.run, feed) for session in sessions]
        for run in runs:
            run()
        turns = dict(zip(order, time_in_turns(runs, seconds, clock), strict=True))
        for model, record in enumerate(records):
            all_runs = [run for turn in turns[model] for run in turn]
            record.medians[number].append(statistics.median(all_runs))
            record.bests[number].append(min(all_runs))
            record.gains[number].append(_gain(turns[0], turns[model]))


def _gain(first: Turns, other: Turns) -> float:
    pairs = zip(first, other, strict=True)
    return statistics.median(statistics.median(before) / statistics.median(after) for before, after in pairs)
