"""What is known of one defect of onnxruntime or onnx."""

from dataclasses import dataclass
from enum import Enum

__all__ = ["Kind", "Quirk"]


class Kind(str, Enum):
    """What a defect does."""

    GARBAGE = "memory that nothing wrote is given out"
    WRONG_NUMBERS = "another result than the operator's text has"
    WRONG_SIZES = "sizes are inferred that are not so"
    OPEN_SIZES = "sizes are not inferred that could be"
    NO_ERROR = "what cannot run runs"
    DEATH = "the process ends"
    HANG = "nothing comes to an end"
    MEMORY = "far more memory is taken than there is use for"
    REFUSAL = "a model that means something is refused"


@dataclass(frozen=True, kw_only=True, slots=True)
class Quirk:
    """``seen``: in which versions. ``worked_round``: the modules that do so; the docstring of each names ``id``.

    ``not_shown``: why no test shows the defect. Every other has one that fails as soon as the defect is gone.
    """

    id: str
    seen: str
    kind: Kind
    symptom: str
    worked_round: tuple[str, ...]
    not_shown: str = ""

    @property
    def of(self) -> str:
        """The library that has the defect."""
        return "onnxruntime" if self.id.startswith("ORT-") else "onnx"
