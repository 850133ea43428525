"""The report on weights that were stored in fewer bits, and on the error that this makes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rewrites.base.plain_text import counted, listed

__all__ = ["FORMATS", "WeightReport", "WeightsReport"]

FORMATS = ("int8", "float16", "bfloat16")
"""The formats in which weights can be stored."""


@dataclass(frozen=True)
class WeightReport:
    """What became of a weight.

    Attributes:
        name: the name of the weight in the model.
        operators: the operators that read it.
        stored_as: its format, such as ``int8``; ``float32`` if it did not change.
        float_bytes: its size as float32.
        bytes: its size in the new model, including scales.
        error: the error of the outputs if only this weight is stored in the format; None if that was not measured.
    """

    name: str
    operators: Sequence[str]
    stored_as: str
    float_bytes: int
    bytes: int
    error: float | None = None


@dataclass(frozen=True)
class WeightsReport:
    """The weights of a model and the error that their format makes.

    Attributes:
        stored_as: the format that was requested.
        max_error: the largest error that was allowed.
        error: the largest error of an output, relative to the largest number of this output in the original.
        decibels: the smallest ratio of signal to error of an output; infinity if there is no error.
        cases: the number of sets of inputs on which the error was measured.
        weights: the weights.
    """

    stored_as: str
    max_error: float
    error: float
    decibels: float
    cases: int
    weights: Sequence[WeightReport] = field(default_factory=tuple)

    @property
    def stored(self) -> list[WeightReport]:
        """Return the weights that are stored in the format."""
        return [weight for weight in self.weights if weight.stored_as == self.stored_as]

    @property
    def error_text(self) -> str:
        """Return the error as a text such as ``0.41 % of the largest number (52 dB)``."""
        return f"{100 * self.error:.2g} % of the largest number ({self.decibels:.0f} dB)"

    def sentences(self) -> list[str]:
        """Return sentences for people: the sizes and the error, and the weights that stay float32."""
        stored, kept = self.stored, [weight for weight in self.weights if weight.stored_as != self.stored_as]
        if not self.weights:
            return [f"no weight is stored as {self.stored_as}, because no product or recurrent node has a large constant weight"]
        share = sum(weight.bytes for weight in stored) / max(1, sum(weight.float_bytes for weight in stored))
        text = f"{counted(len(stored), 'weight')} stored as {self.stored_as}, in {100 * share:.0f} % of the bytes"
        sentences = [f"{text}; largest error on {counted(self.cases, 'set')} of inputs: {self.error_text}"]
        if kept:
            names = listed(weight.name for weight in kept)
            sentences.append(f"float32 because of the error limit {self.max_error:g}: {names}")
        return sentences

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "WeightsReport":
        """Return the report from the result of ``dataclasses.asdict``."""
        return cls(**{**plain, "weights": tuple(WeightReport(**weight) for weight in plain["weights"])})
