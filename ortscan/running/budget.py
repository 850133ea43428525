"""The time and memory limits of a comparison, and which of them were reached."""

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
"""The most memory for the inputs of a full comparison, or for a value whose size is known before the run."""

QUICK_SECONDS = 2.0
"""The time limit of a quick comparison in seconds: 30 times the median over models of real exporters, including sessions."""

QUICK_BYTES = 256 << 20
"""The same for a quick comparison."""

QUICK_SHARE = 0.25
"""A quick comparison may also take this fraction of the rewriting time, if that is more than QUICK_SECONDS."""

PROCESS_SHARE, PROCESS_BYTES = 4, 512 << 20
"""The memory of a process that runs a model: this multiple of the limit for a value, and at least these bytes."""

LARGE_FOLDED = 64 << 20
"""The largest value in bytes that onnxruntime may fold while it loads a model. No timeout can stop a node."""

RUN_SECONDS = 10.0
"""The time limit in seconds of a run of the original. A loop whose condition depends on data may never end."""


def quick_seconds(spent: float) -> float:
    """Return the seconds for a quick comparison of a model that took ``spent`` seconds to rewrite."""
    return max(QUICK_SECONDS, QUICK_SHARE * spent)


@dataclass
class Budget:
    """The seconds and bytes of a comparison. The time starts with this object. ``hits`` describes the limits that were reached."""

    seconds: float
    bytes: int
    started: float = field(default_factory=time.monotonic)
    granted: float = 0.0
    hits: dict[str, None] = field(default_factory=dict)

    def left(self) -> float:
        """Return the seconds left, at least 0."""
        return max(0.0, self.started + self.seconds + self.granted - time.monotonic())

    def grant(self, seconds: float) -> None:
        """Extend the time by ``seconds``, at most by the time spent so far, even beyond the limit. Used if nothing was compared
        yet.
        """
        spent = time.monotonic() - self.started
        self.granted = max(self.granted, spent + min(spent, seconds) - self.seconds)

    def is_spent(self) -> bool:
        """Return True if no time is left, and note it in ``hits``."""
        if self.left() > 0:
            return False
        self.hits[f"the time limit of {self.seconds:.2g} s"] = None
        return True

    def process_bytes(self, weight: int) -> int:
        """Return the memory limit of a process that runs a model with ``weight`` bytes of weights. It may hold them several
        times.
        """
        return max(PROCESS_SHARE * self.bytes, PROCESS_BYTES) + PROCESS_SHARE * weight

    def allows(self, size: int) -> bool:
        """Return True if a value or the inputs of a case may occupy ``size`` bytes, else note it in ``hits``."""
        if size <= self.bytes:
            return True
        limit = f"{self.bytes >> 20} MiB" if self.bytes >> 20 else f"{self.bytes} bytes"
        self.hits[f"the memory limit of {limit}"] = None
        return False
