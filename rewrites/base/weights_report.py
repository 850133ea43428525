"""The report on weights that were stored in fewer bits, and on the error that this makes."""

from dataclasses import dataclass, field
from typing import Any

from rewrites.base.plain_text import counted, quoted

__all__ = ["FORMATS", "WeightReport", "WeightsReport"]

_MOST_KEPT = 5
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
        lacking: the numbers of the weight that the format cannot store, as a text; "" if there are none.
    """

    name: str
    operators: list[str]
    stored_as: str
    float_bytes: int
    bytes: int
    error: float | None = None
    lacking: str = ""

    def why_float(self, max_error: float) -> str:
        """Return the name of the weight and the reason why it stays float32."""
        reason = self.lacking
        if not reason and self.error is not None:
            reason = f"its error would be {_percent(self.error)}, the limit is {_percent(max_error)}"
        return f"{quoted(self.name)} ({reason})" if reason else quoted(self.name)


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
        left_out: a sentence on the largest constant that is no such weight; "" if there is none.
        of_elements: True if ``error`` is the share of elements that differ, in an output that has no floats.
    """

    stored_as: str
    max_error: float
    error: float
    decibels: float
    cases: int
    weights: list[WeightReport] = field(default_factory=list)
    left_out: str = ""
    of_elements: bool = False

    @property
    def stored(self) -> list[WeightReport]:
        """Return the weights that are stored in the format."""
        return [weight for weight in self.weights if weight.stored_as == self.stored_as]

    @property
    def share(self) -> float:
        """Return the size of all weights in the new model, as a share of their size as float32."""
        return sum(weight.bytes for weight in self.weights) / max(1, sum(weight.float_bytes for weight in self.weights))

    @property
    def error_text(self) -> str:
        """Return the error as a text such as ``error 0.41 % of the largest number (52 dB)``."""
        if self.of_elements:
            return f"{_percent(self.error)} of the elements differ"
        return f"error {_percent(self.error)} of the largest number{f' ({self.decibels:.0f} dB)' if self.error else ''}"

    def sentences(self) -> list[str]:
        """Return sentences for people: the sizes and the error, and the weights that stay float32."""
        stored, kept = self.stored, [weight for weight in self.weights if weight.stored_as != self.stored_as]
        if not self.weights:
            return [f"no weight is stored as {self.stored_as}: {self.left_out}"]
        of = f"{len(stored)} of {counted(len(self.weights), 'weight')}"
        text = f"{of} stored as {self.stored_as}; the weights take {100 * self.share:.0f} % of the bytes"
        sentences = [f"{text}; on {counted(self.cases, 'set')} of inputs: {self.error_text}"]
        if kept:
            more = f" and {len(kept) - _MOST_KEPT} more" if len(kept) > _MOST_KEPT else ""
            reasons = ", ".join(weight.why_float(self.max_error) for weight in kept[:_MOST_KEPT])
            sentences.append(f"stays float32: {reasons}{more}")
        return sentences + [self.left_out] * bool(self.left_out)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "WeightsReport":
        """Return the report from the result of ``dataclasses.asdict``."""
        return cls(**{**plain, "weights": [WeightReport(**weight) for weight in plain["weights"]]})


def _percent(share: float) -> str:
    return f"{float(f'{100 * share:.2g}'):g} %"
