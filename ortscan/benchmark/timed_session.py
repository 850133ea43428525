"""A session to time, and the times of its loops and recurrent nodes from onnxruntime's profile.

The profiler writes a record for every node of every step. This takes several times as long as running a small node, so a Scan would
seem to take most of a run. The time of a loop is therefore corrected:

    overhead of a record = (duration of a profiled run - duration of a run without profile) / number of records
    time of a loop       = its recorded time - number of records within it * overhead of a record
"""

import itertools
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.base.temporary import TemporaryFolder
from ortscan.benchmark.result import LoopTime
from ortscan.benchmark.rounds import clock_for
from ortscan.ort.model_errors import in_short
from ortscan.running.runner import register_called
from rewrites.base.errors import UnsupportedModel, is_raised_by
from rewrites.base.plain_text import plain

__all__ = ["TimedSession", "loop_times", "times_of_loops"]

if TYPE_CHECKING:
    from ortscan.modelio.source import ModelSource


class TimedSession:
    """A session on the CPU without ortscan's wrapper.

    ``load_seconds`` is the time that creating the session took, measured with ``clock_for(threads)``.

    Args:
        source: the model.
        name: the name of the model in error messages. UnsupportedModel is raised if the model does not load or run.
        threads: the threads within an operator; 0 lets onnxruntime choose.
        profile: the prefix of the path of a profile; None for no profile.
    """

    def __init__(self, source: "ModelSource", name: str, threads: int, profile: str | None = None) -> None:
        import onnxruntime as ort
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # the original class, not a patched one

        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.force_spinning_stop", "1")  # or idle threads of one session slow down the next
        if source.folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", source.folder)
        register_called(options, source.target)
        if profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, profile
        self._name = name
        clock = clock_for(threads).own
        started = clock()
        try:
            self._session = InferenceSession(source.target, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise self._in_words(error, "does not load") from None
        self.load_seconds = clock() - started

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        """Run once and return the results."""
        try:
            results: Sequence[Any] = self._session.run(None, feed)
            return results
        except Exception as error:
            raise self._in_words(error, "does not run") from None

    def end_profiling(self) -> str:
        """End the profile and return its path."""
        return str(self._session.end_profiling())

    def _in_words(self, error: Exception, problem: str) -> Exception:
        if not is_raised_by(error, "onnxruntime", "numpy"):
            return error
        return UnsupportedModel(f"{self._name} {problem} on onnxruntime: {in_short(error)}.")


_LOOPS = ("Scan", "Loop", "If", "RNN", "GRU", "LSTM", "Scan1", "Loop1")
"""Operators that count as loops. The last two belong to ortscan's library."""
_RUNS = 3
_MOST_BYTES = 64 << 20
"""The most bytes of a profile. A larger profile is not read."""
_SUFFIX = "_kernel_time"


def times_of_loops(open_profiled: Callable[[str], TimedSession], feed: Mapping[str, Any], seconds: float) -> list[LoopTime] | None:
    """Run a model a few times on ``feed`` with a profile, and return the times of its loops.

    Return None if the profile is too large.

    Args:
        open_profiled: a function that creates the session. Its argument is the prefix of the path of the profile.
        feed: the inputs.
        seconds: the time of a run without a profile.
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
    """An event of a profile: the run of a node. ``inner`` is the number of events within it."""

    key: tuple[str, str, str]
    start: float
    seconds: float
    inner: int = 0


def loop_times(events: Iterable[Mapping[str, Any]], seconds: float) -> list[LoopTime]:
    """Return the times of the outermost loops and recurrent nodes, slowest first.

    If an If contains a loop, the loop is returned instead of the If. The times add up to at most ``seconds``: profiled runs may be
    slower, so larger times are scaled down.

    Args:
        events: the profile of several runs. The first run is ignored.
        seconds: the time of a run without a profile.
    """
    nodes = [_event(event) for event in events if event.get("cat") == "Node" and str(event.get("name")).endswith(_SUFFIX)]
    runs = [_event(event) for event in events if event.get("name") == "model_run"]
    nodes.sort(key=lambda event: (event.start, -event.seconds))
    by_node: dict[tuple[str, str, str], list[float]] = {}
    for run in sorted(runs, key=lambda event: event.start)[1:]:
        inside = [node for node in nodes if run.start <= node.start < run.start + run.seconds]
        cost = max(0.0, run.seconds - seconds) / max(1, len(inside))
        for key, each in itertools.groupby(sorted(_outermost_loops(inside), key=lambda node: node.key), key=lambda node: node.key):
            by_node.setdefault(key, []).append(sum(max(0.0, node.seconds - cost * node.inner) for node in each))
    medians = {key: statistics.median(each) for key, each in by_node.items()}
    scale = min(1.0, seconds / max(sum(medians.values()), 1e-12))
    unnamed = itertools.count(1)
    times = [
        LoopTime(plain(name) or f"{op_type} {next(unnamed)}", op_type, median * scale, median * scale / seconds)
        for (name, op_type, _), median in medians.items()
    ]
    return sorted(times, key=lambda loop: -loop.seconds)


def _event(event: Mapping[str, Any]) -> _Event:
    args = event.get("args") or {}
    key = (str(event.get("name")).removesuffix(_SUFFIX), str(args.get("op_name", "")), str(args.get("node_index", "")))
    return _Event(key, event.get("ts", 0) / 1e6, event.get("dur", 0) / 1e6)


def _outermost_loops(nodes: Sequence[_Event]) -> list[_Event]:
    loops: list[_Event] = []
    index = 0
    while index < len(nodes):
        node, index = nodes[index], index + 1
        if node.key[1] not in _LOOPS:
            continue
        after = index
        while after < len(nodes) and nodes[after].start < node.start + node.seconds:
            after += 1
        if node.key[1] != "If" or all(inner.key[1] not in _LOOPS for inner in nodes[index:after]):
            loops.append(_Event(node.key, node.start, node.seconds, after - index))
            index = after
    return loops
