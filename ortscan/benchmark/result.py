"""The result of a benchmark: as data, as text and as sections of an HTML page."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ortscan.page.document import Bar, bars, document, fragment, header, paragraphs, table
from ortscan.report.ratio import Ratio, Speedup, duration, gain, gain_line, noise, ratio_of
from ortscan.report.words import size
from rewrites.base.plain_text import counted

__all__ = ["Bench", "BenchedModel", "LoopTime", "SizeResult", "Timing"]


@dataclass(frozen=True)
class Timing:
    """The time of a run of one model at certain sizes, in seconds.

    Attributes:
        median: the median of ``rounds``.
        best: the time of the fastest run.
        rounds: for each round, the median time of its runs.
        gains: for each round, the speed relative to the first model.
    """

    median: float
    best: float
    rounds: Sequence[float]
    gains: Sequence[float]


@dataclass(frozen=True)
class LoopTime:
    """The time of a loop or recurrent node in a run, from onnxruntime's profile.

    ``seconds`` includes the body but not the profiler's overhead. ``share`` is the fraction of the whole run.
    """

    name: str
    op_type: str
    seconds: float
    share: float


@dataclass(frozen=True)
class BenchedModel:
    """A measured model.

    Attributes:
        name: its name in the result.
        file_bytes: the size of the model file and its external data.
        load_seconds: the median time to create a session.
        load_rounds: the time to create a session in each round.
        peak_bytes: the peak memory of a process that runs the model at the measured sizes; None if the system does not report it.
        loops: the times of its loops at the first of the sizes.
    """

    name: str
    file_bytes: int
    load_seconds: float
    load_rounds: Sequence[float]
    peak_bytes: int | None = None
    loops: Sequence[LoopTime] = ()

    @property
    def in_words(self) -> tuple[str, str, str]:
        """The file size, the load time and the peak memory as texts."""
        peak = "?" if self.peak_bytes is None else size(self.peak_bytes)
        return size(self.file_bytes), duration(self.load_seconds), peak


@dataclass(frozen=True)
class SizeResult:
    """The timings of all models, in their order, at certain ``sizes`` of free dimensions and trip counts."""

    sizes: Mapping[str, int]
    timings: Sequence[Timing]

    @property
    def label(self) -> str:
        """The sizes in words: ``T=64, B=1``."""
        return ", ".join(f"{name}={number}" for name, number in self.sizes.items()) or "fixed sizes"

    def ratio(self, model: int = -1) -> Ratio:
        """Return the speed of ``model`` relative to the first model."""
        first, other = self.timings[0], self.timings[model]
        return ratio_of(other.gains, first.median / other.median)

    def speedup(self, model: int = -1) -> Speedup:
        """Return how much faster ``model`` is than the first model."""
        return Speedup(self.timings[0].median, self.timings[model].median, self.ratio(model), self.sizes, self.label)


@dataclass(frozen=True)
class Bench:
    """The result of `bench`: the costs of all models at all sizes, and ``notes`` for the reader.

    ``threads`` is the number of threads within an operator; 0 lets onnxruntime choose. ``runtime`` is the version of onnxruntime.
    ``has_library`` is True if ortscan's library ran the compiled loops, and None if no model has compiled loops.
    """

    models: Sequence[BenchedModel]
    results: Sequence[SizeResult]
    threads: int
    rounds: int
    runtime: str
    notes: Sequence[str] = ()
    has_library: bool | None = None

    @property
    def is_faster(self) -> bool:
        """True if the last model is measurably faster at some sizes, and measurably slower at none.

        The last model is compared with the first.
        """
        ratios = [result.ratio() for result in self.results]
        return any(ratio.is_faster for ratio in ratios) and not any(ratio.is_slower for ratio in ratios)

    @property
    def is_slower(self) -> bool:
        """True if the last model is measurably slower at some sizes, and measurably faster at none.

        The last model is compared with the first.
        """
        ratios = [result.ratio() for result in self.results]
        return any(ratio.is_slower for ratio in ratios) and not any(ratio.is_faster for ratio in ratios)

    @property
    def setting(self) -> str:
        """The runtime, the threads and the rounds in words."""
        threads = counted(self.threads, "thread") if self.threads else "threads as onnxruntime chooses"
        library = "" if self.has_library is None else f", {'with' if self.has_library else 'without'} ortscan's library"
        return f"onnxruntime {self.runtime} on the CPU{library}, {threads}, {counted(self.rounds, 'round')}"

    def summary(self) -> str:
        """Return lines that compare each model with the first at each of the sizes, and the notes."""
        names = [model.name for model in self.models]
        lines = [
            f"{name} {gain_line(result.ratio(number), result.label, than=names[0])}"
            for number, name in enumerate(names[1:], 1)
            for result in self.results
        ]
        return "\n".join([*lines, *self.notes])

    def __str__(self) -> str:
        return self.summary()

    def in_short(self) -> str:
        """Return the gain of the last model at each of the sizes: ``3.1 x faster (T=64, B=1)``."""
        return ", ".join(f"{gain(result.ratio())} ({result.label})" for result in self.results)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain dicts and lists, with the ratios to the first model."""
        plain = asdict(self)
        for row, result in zip(plain["results"], self.results, strict=True):
            row["ratios"] = [asdict(result.ratio(number)) for number in range(1, len(self.models))]
        return {**plain, "summary": self.summary()}

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        title = " and ".join(model.name for model in self.models)
        return document(title, header("ortscan bench", title, self.summary().splitlines(), [self.card()]) + self.section())

    def _repr_html_(self) -> str:
        return fragment(self.section())

    def card(self) -> tuple[str, str, str]:
        """Return a card with the gain of the last model at the first sizes, or the time of a single model."""
        result = self.results[0]
        if len(self.models) == 1:
            return duration(result.timings[0].median), f"a run, {result.label}", ""
        ratio = result.ratio()
        value = gain(ratio) if ratio.is_measurable else "no difference"
        return value, f"measured, {result.label}", _css_class(ratio)

    def section(self) -> str:
        """Return bars of the times and loops, and a table of the models, as a section of a page."""
        times = []
        for result in self.results:
            for number, (model, timing) in enumerate(zip(self.models, result.timings, strict=True)):
                text, look = duration(timing.median), ""
                if number:
                    ratio = result.ratio(number)
                    text, look = f"{text} · {gain(ratio)} ({noise(ratio)})", _css_class(ratio)
                times.append(Bar(model.name, timing.median, text, f"A run, {result.label}: median", look))
        title = f"Loops and recurrent nodes, {self.results[0].label}"
        loops = [
            Bar(f"{model.name}: {loop.name}", loop.seconds, f"{duration(loop.seconds)} · {loop.share:.0%} of a run", title)
            for model in self.models
            for loop in model.loops[:24]
        ]
        right = ("file", "load", "peak memory")
        models = table(("model", *right), [(model.name, *model.in_words) for model in self.models], right)
        return bars(times) + bars(loops) + models + paragraphs([self.setting, *self.notes], "soft")


def _css_class(ratio: Ratio) -> str:
    return "" if not ratio.is_measurable else "good" if ratio.is_faster else "bad"
