"""The settings of a comparison of two models."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ortscan.modelio.source import ModelSource
from ortscan.running.budget import Budget, Level
from ortscan.running.runner import ModelSession

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["CPU", "CompareSettings", "Reference"]

CPU = ("CPUExecutionProvider",)


@dataclass(frozen=True)
class Reference:
    """A model that computes the expected outputs in another way than the original.

    Attributes:
        source: the model.
        outputs: the outputs of the model to compute.
        around: a function that turns a session of the model, or of a changed copy, into a session with the original's interface.
    """

    source: ModelSource
    outputs: Sequence[str]
    around: Callable[[ModelSession], ModelSession]


@dataclass(frozen=True)
class CompareSettings:
    """The settings of a comparison.

    Attributes:
        budget: the available time and memory.
        stack: removes temporary files and stops subprocesses at the end of the comparison.
        seed: the seed of generated values.
        rtol: the relative tolerance that the caller chose; None for the default.
        atol: the absolute tolerance that the caller chose; None for the default.
        providers: the execution providers that run the rewritten model. The original runs on the CPU provider.
        configure: a function that is called with the SessionOptions of each session.
        level: how thorough the comparison is.
        reference: the model whose outputs are expected, if it is not the original itself.
    """

    budget: Budget
    stack: ExitStack
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    providers: Sequence[Any] = CPU
    configure: "Callable[[ort.SessionOptions], object] | None" = None
    level: Level = "full"
    reference: Reference | None = None
