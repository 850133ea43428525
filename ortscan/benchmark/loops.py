"""The part of each loop and recurrent node in a run, out of onnxruntime's profile.

The profiler notes every node of every step, which takes several times as long as a small node: a Scan seems to take most of a run
that it has little part in. What a run takes longer than without a profile is spread over all that was noted, and a loop gives back
the part of what was noted in it.
"""

import itertools
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ortscan.base.temporary import TemporaryFolder
from ortscan.benchmark.result import LoopTime
from ortscan.benchmark.session import TimedSession
from rewrites.base.plain_text import plain

__all__ = ["loop_times", "times_of_loops"]

_LOOPS = ("Scan", "Loop", "If", "RNN", "GRU", "LSTM", "Scan1", "Loop1")
"""The last two are calls of ortscan's library."""
_RUNS = 3
_MOST_BYTES = 64 << 20
"""Of a profile; one of more is not read."""
_SUFFIX = "_kernel_time"


def times_of_loops(open_profiled: Callable[[str], TimedSession], feed: Mapping[str, Any], seconds: float) -> list[LoopTime] | None:
    """Profile a few runs of a session on ``feed``; None where that gives too much to read.

    ``seconds``: what a run takes that is not profiled.
    """
    with TemporaryFolder() as folder:
        session = open_profiled(str(folder / "profile"))
        for _ in range(_RUNS + 1):
            session.run(feed)
        profile = Path(session.end_profiling())
        if profile.stat().st_size > _MOST_BYTES:
            return None
        events = json.loads(profile.read_text(encoding="utf-8", errors="replace"))
    return loop_times(events, seconds)


@dataclass(frozen=True)
class _Event:
    """``start``, ``seconds``: when and how long; ``inner``: how many events there are within it."""

    key: tuple[str, str, str]
    start: float
    seconds: float
    inner: int = 0


def loop_times(events: Iterable[Mapping[str, Any]], seconds: float) -> list[LoopTime]:
    """Return the outermost loops and recurrent nodes, the dearest first; an If only where it holds none.

    ``events``: a profile of several runs, the first of which does not count. ``seconds``: of a run that is not profiled.
    """
    nodes = [_event(event) for event in events if event.get("cat") == "Node" and str(event.get("name")).endswith(_SUFFIX)]
    runs = [_event(event) for event in events if event.get("name") == "model_run"]
    nodes.sort(key=lambda event: (event.start, -event.seconds))
    found: dict[tuple[str, str, str], list[float]] = {}
    for run in sorted(runs, key=lambda event: event.start)[1:]:
        inside = [node for node in nodes if run.start <= node.start < run.start + run.seconds]
        cost = max(0.0, run.seconds - seconds) / max(1, len(inside))
        for key, each in itertools.groupby(sorted(_outermost_loops(inside), key=lambda node: node.key), key=lambda node: node.key):
            found.setdefault(key, []).append(sum(max(0.0, node.seconds - cost * node.inner) for node in each))
    unnamed = itertools.count(1)
    times = [
        LoopTime(plain(name) or f"{op_type} {next(unnamed)}", op_type, taken := statistics.median(each), min(1.0, taken / seconds))
        for (name, op_type, _), each in found.items()
    ]
    return sorted(times, key=lambda one: -one.seconds)


def _event(event: Mapping[str, Any]) -> _Event:
    args = event.get("args") or {}
    key = (str(event.get("name")).removesuffix(_SUFFIX), str(args.get("op_name", "")), str(args.get("node_index", "")))
    return _Event(key, event.get("ts", 0) / 1e6, event.get("dur", 0) / 1e6)


def _outermost_loops(nodes: Sequence[_Event]) -> list[_Event]:
    found: list[_Event] = []
    place = 0
    while place < len(nodes):
        node, place = nodes[place], place + 1
        if node.key[1] not in _LOOPS:
            continue
        after = place
        while after < len(nodes) and nodes[after].start < node.start + node.seconds:
            after += 1
        if node.key[1] != "If" or all(inner.key[1] not in _LOOPS for inner in nodes[place:after]):
            found.append(_Event(node.key, node.start, node.seconds, after - place))
            place = after
    return found
