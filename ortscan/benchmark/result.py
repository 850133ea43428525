"""What a benchmark found, as data and as a few lines of text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ortscan.benchmark.ratio import Ratio, ratio_of
from ortscan.benchmark.words import gain, gain_line

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

    ``load_seconds``: the median time to make a session. ``file_bytes``: of the file, with its external data. ``peak_bytes``: what a
    process takes for the session, the inputs and a run at the sizes that were timed, at its peak, None where the system does not
    tell. ``loops``: at the first of the sizes.
    """

    name: str
    file_bytes: int
    load_seconds: float
    load_rounds: Sequence[float]
    peak_bytes: int | None = None
    loops: Sequence[LoopTime] = ()


@dataclass(frozen=True)
class SizeResult:
    """All models at one choice of sizes of the free dimensions, and trip counts; ``timings``: one a model, in their order."""

    sizes: Mapping[str, int]
    timings: Sequence[Timing]

    @property
    def label(self) -> str:
        """The sizes in words: ``T=64, B=1``."""
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items()) or "fixed sizes"

    def ratio(self, model: int = -1) -> Ratio:
        """Return how many times as fast as the first model another is."""
        return ratio_of(self.timings[model].gains)


@dataclass(frozen=True)
class Bench:
    """The outcome of `bench`: all models at all sizes. ``notes``: what a reader should know.

    ``threads``: those of onnxruntime within an operator, 0 for its own choice. ``runtime``: its version.
    """

    models: Sequence[BenchedModel]
    results: Sequence[SizeResult]
    threads: int
    rounds: int
    runtime: str
    notes: Sequence[str] = ()

    @property
    def is_slower(self) -> bool:
        """Whether the last model is measurably slower than the first at some size, and measurably faster at none."""
        ratios = [result.ratio() for result in self.results]
        return any(ratio.is_slower for ratio in ratios) and not any(ratio.is_faster for ratio in ratios)

    def summary(self) -> str:
        """Return a line for each model but the first and each of the sizes: how much faster or slower than the first it is."""
        names = [model.name for model in self.models]
        lines = [
            f"{name} {gain_line(result.ratio(place), result.label, than=names[0])}"
            for place, name in enumerate(names[1:], 1)
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
            row["ratios"] = [asdict(result.ratio(place)) for place in range(1, len(self.models))]
        return {**plain, "summary": self.summary()}

    def to_html(self) -> str:
        """Return a whole HTML page that needs nothing else."""
        from ortscan.benchmark.as_html import bench_page

        return bench_page(self.to_dict())

    def _repr_html_(self) -> str:
        from ortscan.benchmark.as_html import bench_fragment

        return bench_fragment(self.to_dict())
