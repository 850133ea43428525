"""The outcome of a benchmark, as data, as a few lines of text and as sections of an HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ortscan.benchmark.ratio import Ratio, duration, gain, gain_line, noise, ratio_of
from ortscan.page.document import Bar, bars, document, fragment, header, paragraphs, table
from ortscan.report.words import size
from rewrites.base.plain_text import counted

__all__ = ["Bench", "BenchedModel", "LoopTime", "SizeResult", "Timing"]


@dataclass(frozen=True)
class Timing:
    """The seconds of one run: the ``median`` of the medians of the ``rounds``, the ``best`` of all runs.

    ``gains``: how many times as fast as the first model it was, in each round.
    """

    median: float
    best: float
    rounds: Sequence[float]
    gains: Sequence[float]


@dataclass(frozen=True)
class LoopTime:
    """A loop or recurrent node of a model in one run, by onnxruntime's profile.

    ``seconds``: its part of the time of a run that is not profiled, with all that runs in it. ``share``: of the whole run.
    """

    name: str
    op_type: str
    seconds: float
    share: float


@dataclass(frozen=True)
class BenchedModel:
    """One of the models.

    ``load_seconds``: the median time to make a session. ``file_bytes``: of the file and its external data. ``peak_bytes``: the peak
    memory of a process with the session, its inputs and a run at the timed sizes; None if the system does not tell.
    ``loops``: at the first of the sizes.
    """

    name: str
    file_bytes: int
    load_seconds: float
    load_rounds: Sequence[float]
    peak_bytes: int | None = None
    loops: Sequence[LoopTime] = ()

    @property
    def in_words(self) -> tuple[str, str, str]:
        """The size of the file, the time to load and the peak memory."""
        peak = "?" if self.peak_bytes is None else size(self.peak_bytes)
        return size(self.file_bytes), duration(self.load_seconds), peak


@dataclass(frozen=True)
class SizeResult:
    """All models at one choice of sizes of free dimensions and trip counts; ``timings``: one for each model, in their order."""

    sizes: Mapping[str, int]
    timings: Sequence[Timing]

    @property
    def label(self) -> str:
        """The sizes in words: ``T=64, B=1``."""
        return ", ".join(f"{name}={number}" for name, number in self.sizes.items()) or "fixed sizes"

    def ratio(self, model: int = -1) -> Ratio:
        """Return how many times as fast as the first model another is."""
        return ratio_of(self.timings[model].gains)


@dataclass(frozen=True)
class Bench:
    """The outcome of `bench`: all models at all sizes, and ``notes`` for the reader.

    ``threads``: onnxruntime's threads within an operator, 0 for its own choice. ``runtime``: its version.
    """

    models: Sequence[BenchedModel]
    results: Sequence[SizeResult]
    threads: int
    rounds: int
    runtime: str
    notes: Sequence[str] = ()

    @property
    def is_faster(self) -> bool:
        """Whether the last model is measurably faster than the first at some size, and measurably slower at none."""
        ratios = [result.ratio() for result in self.results]
        return any(ratio.is_faster for ratio in ratios) and not any(ratio.is_slower for ratio in ratios)

    @property
    def is_slower(self) -> bool:
        """Whether the last model is measurably slower than the first at some size, and measurably faster at none."""
        ratios = [result.ratio() for result in self.results]
        return any(ratio.is_slower for ratio in ratios) and not any(ratio.is_faster for ratio in ratios)

    @property
    def setting(self) -> str:
        """The runtime, the threads and the rounds in words."""
        threads = counted(self.threads, "thread") if self.threads else "threads as onnxruntime chooses"
        return f"onnxruntime {self.runtime} on the CPU, {threads}, {counted(self.rounds, 'round')}"

    def summary(self) -> str:
        """Return a line for each model but the first and each of the sizes: how much faster or slower than the first it is."""
        names = [model.name for model in self.models]
        lines = [
            f"{name} {gain_line(result.ratio(number), result.label, than=names[0])}"
            for number, name in enumerate(names[1:], 1)
            for result in self.results
        ]
        return "\n".join([*lines, *self.notes])

    def in_short(self) -> str:
        """Return what the last model gains beside the first, at each of the sizes: ``3.1 x faster (T=64, B=1)``."""
        return ", ".join(f"{gain(result.ratio())} ({result.label})" for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain dicts and lists, with the ratios to the first model."""
        plain = asdict(self)
        for row, result in zip(plain["results"], self.results, strict=True):
            row["ratios"] = [asdict(result.ratio(number)) for number in range(1, len(self.models))]
        return {**plain, "summary": self.summary()}

    def to_html(self) -> str:
        """Return a whole HTML page that needs nothing else."""
        title = " and ".join(model.name for model in self.models)
        return document(title, header("ortscan bench", title, self.summary().splitlines(), [self.card()]) + self.section())

    def _repr_html_(self) -> str:
        return fragment(self.section())

    def card(self) -> tuple[str, str, str]:
        """Return the gain of the last model at the first sizes, or the time of the only one, as a card of a page."""
        result = self.results[0]
        if len(self.models) == 1:
            return duration(result.timings[0].median), f"a run, {result.label}", ""
        ratio = result.ratio()
        value = gain(ratio) if ratio.is_measurable else "no difference"
        return value, f"measured, {result.label}", _look(ratio)

    def section(self) -> str:
        """Return bars of the times and of the loops and a table of the models, as a section of a page."""
        times = []
        for result in self.results:
            for number, (model, timing) in enumerate(zip(self.models, result.timings, strict=True)):
                said, look = duration(timing.median), ""
                if number:
                    ratio = result.ratio(number)
                    said, look = f"{said} · {gain(ratio)} ({noise(ratio)})", _look(ratio)
                times.append(Bar(model.name, timing.median, said, f"A run, {result.label}: median", look))
        title = f"Loops and recurrent nodes, {self.results[0].label}"
        loops = [
            Bar(f"{model.name}: {loop.name}", loop.seconds, f"{duration(loop.seconds)} · {loop.share:.0%} of a run", title)
            for model in self.models
            for loop in model.loops[:24]
        ]
        right = ("file", "load", "peak memory")
        models = table(("model", *right), [(model.name, *model.in_words) for model in self.models], right)
        return bars(times) + bars(loops) + models + paragraphs([self.setting, *self.notes], "soft")


def _look(ratio: Ratio) -> str:
    return "" if not ratio.is_measurable else "good" if ratio.is_faster else "bad"
