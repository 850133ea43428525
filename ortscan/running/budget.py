"""The time and memory limits of a comparison, with a record of the limits that were reached."""

import time
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "FULL_BYTES",
    "FULL_SECONDS",
    "LARGE_FOLDED",
    "QUICK_BYTES",
    "QUICK_SECONDS",
    "RUN_SECONDS",
    "Budget",
    "Level",
    "quick_seconds",
]

Level = Literal["full", "quick"]

FULL_SECONDS = 600.0
"""The time limit of a full comparison in seconds. After it no further case starts, and the current run stops."""

FULL_BYTES = 2 << 30
"""The most bytes, in a full comparison, of the inputs of a case, and of a value whose size is known before the run."""

QUICK_SECONDS = 2.0
"""The time limit of a quick comparison in seconds: 30 times the median for models of real exporters, with session starts."""

QUICK_BYTES = 256 << 20
"""The limit that replaces FULL_BYTES in a quick comparison."""

QUICK_SHARE = 0.25
"""A quick comparison may also take this fraction of the rewriting time, if that is more than QUICK_SECONDS."""

PROCESS_SHARE, PROCESS_BYTES = 4, 512 << 20
"""The memory limit of a process that runs a model: a multiple of the limit for one value, and a minimum in bytes."""

LARGE_FOLDED = 64 << 20
"""The most bytes of a value that onnxruntime may fold while it loads a model, because no timeout can stop the folded node."""

RUN_SECONDS = 10.0
"""The time limit in seconds of a run of the original. A loop whose condition depends on data may never end."""


def quick_seconds(spent: float) -> float:
    """Return the time limit of a quick comparison in seconds.

    ``spent`` is the time in seconds that rewriting took. The limit is QUICK_SECONDS, or QUICK_SHARE of ``spent`` if that is more.
    """
    return max(QUICK_SECONDS, QUICK_SHARE * spent)


@dataclass
class Budget:
    """The limits of a comparison in seconds and bytes. The time starts when this object is created.

    Attributes:
        seconds: the time limit.
        bytes: the memory limit for a value, and for the inputs of a case.
        started: the start, as a value of ``time.monotonic``.
        granted: the seconds by which ``grant`` has extended the time limit.
        hits: descriptions of the limits that were reached.
    """

    seconds: float
    bytes: int
    started: float = field(default_factory=time.monotonic)
    granted: float = 0.0
    hits: dict[str, None] = field(default_factory=dict)

    def left(self) -> float:
        """Return the remaining seconds, at least 0."""
        return max(0.0, self.started + self.seconds + self.granted - time.monotonic())

    def grant(self, seconds: float) -> None:
        """Extend the time limit so that ``seconds`` remain, but at most as many as have been spent.

        A comparison calls this method if it has not compared any outputs yet.
        """
        spent = time.monotonic() - self.started
        self.granted = max(self.granted, spent + min(spent, seconds) - self.seconds)

    def is_spent(self) -> bool:
        """Return True if no time remains. If so, record the time limit in ``hits``."""
        if self.left() > 0:
            return False
        self.hits[f"the time limit of {self.seconds:.2g} s"] = None
        return True

    def process_bytes(self, weight: int) -> int:
        """Return the memory limit of a process that runs a model with ``weight`` bytes of weights.

        The process may hold the weights several times.
        """
        return max(PROCESS_SHARE * self.bytes, PROCESS_BYTES) + PROCESS_SHARE * weight

    def allows(self, size: int) -> bool:
        """Return True if ``size`` bytes are within the memory limit. If not, record this in ``hits``.

        ``size`` is the size of a value, or of all inputs of a case together.
        """
        if size <= self.bytes:
            return True
        limit = f"{self.bytes >> 20} MiB" if self.bytes >> 20 else f"{self.bytes} bytes"
        self.hits[f"the memory limit of {limit}"] = None
        return False
