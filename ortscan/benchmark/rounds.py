"""Rounds of timing: in each, every model gets a session of its own, and is timed at every size."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ortscan.benchmark.ratio import LEAST_ROUNDS
from ortscan.benchmark.turns import Clock, Turns, time_in_turns

__all__ = ["Loaded", "Records", "timed_in_rounds"]

_LEAST = 2
"""So many rounds are run however long they take; of one there is no noise to be told."""
_PATIENCE = 4.0
"""So many times as long as was asked for it may take until there are rounds enough to tell a difference from noise."""
_SLACK = 1.5
"""So many times as long for the rounds after those: their turns take as long as a run does, at least."""


class Loaded(Protocol):
    """A session."""

    load_seconds: float

    def run(self, feed: Mapping[str, Any]) -> object:
        """Run once."""


@dataclass
class Records:
    """What one model took, and for each size a list of rounds.

    ``loads``: the seconds to make a session, in each round. ``medians``, ``bests``: the seconds of a run. ``gains``: how many times
    as fast it was as the first model; of turns that came one after the other, since what else a machine does changes in between.
    """

    loads: list[float]
    medians: list[list[float]]
    bests: list[list[float]]
    gains: list[list[float]]


def timed_in_rounds(
    load: Sequence[Callable[[], Loaded]],
    feeds: Sequence[Mapping[str, Any]],
    rounds: int,
    seconds: float,
    clock: Clock,
    progress: Callable[[int, int], None] | None = None,
) -> list[Records]:
    """Time what ``load`` loads on ``feeds`` in so many rounds, or in fewer where they take much longer than ``seconds``."""
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
    sessions = [load[place]() for place in order]
    for place, session in zip(order, sessions, strict=True):
        records[place].loads.append(session.load_seconds)
    for number, feed in enumerate(feeds):
        runs = [partial(session.run, feed) for session in sessions]
        for run in runs:
            run()
        turns = dict(zip(order, time_in_turns(runs, seconds, clock), strict=True))
        for place, record in enumerate(records):
            all_runs = [run for turn in turns[place] for run in turn]
            record.medians[number].append(statistics.median(all_runs))
            record.bests[number].append(min(all_runs))
            record.gains[number].append(_gain(turns[0], turns[place]))


def _gain(first: Turns, other: Turns) -> float:
    pairs = zip(first, other, strict=True)
    return statistics.median(statistics.median(before) / statistics.median(after) for before, after in pairs)
