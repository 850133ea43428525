"""How long a comparison may take and how much memory its values may, and whether that was reached."""

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
"""After so many seconds a full comparison starts no further case, and stops the run it is in."""

FULL_BYTES = 2 << 30
"""What the inputs of a full comparison may take, or any value that is known to be as large before the model is run."""

QUICK_SECONDS = 2.0
"""The same for a quick comparison: about thirty times what one of the median model of a real exporter takes, sessions and all."""

QUICK_BYTES = 256 << 20
"""The same for the memory of a quick comparison."""

QUICK_SHARE = 0.25
"""Where a model took long to rewrite a quick comparison may take this share of that time, if it is more than QUICK_SECONDS."""

PROCESS_SHARE, PROCESS_BYTES = 4, 512 << 20
"""What a process that runs a model may take beside the model: so many times what a value may, and as much at least."""

LARGE_FOLDED = 64 << 20
"""Bytes of a value that onnxruntime may compute from constants while it loads a model here: no clock stops it in one node."""

RUN_SECONDS = 10.0
"""How long the original may run on one set of inputs before it is stopped: a loop that only its data ends may never end."""


def quick_seconds(spent: float) -> float:
    """Return the seconds for a quick comparison of a model that took ``spent`` seconds to rewrite."""
    return max(QUICK_SECONDS, QUICK_SHARE * spent)


@dataclass
class Budget:
    """The seconds and bytes one comparison may take. It starts when it is made; ``hits`` says what was reached, in words."""

    seconds: float
    bytes: int
    started: float = field(default_factory=time.monotonic)
    granted: float = 0.0
    hits: dict[str, None] = field(default_factory=dict)

    def left(self) -> float:
        """Return the seconds left, 0 at least."""
        return max(0.0, self.started + self.seconds + self.granted - time.monotonic())

    def grant(self, seconds: float) -> None:
        """Leave so many seconds, or as many as were spent, whatever the limit: where nothing is compared all was in vain."""
        spent = time.monotonic() - self.started
        self.granted = max(self.granted, spent + min(spent, seconds) - self.seconds)

    def is_spent(self) -> bool:
        """Return whether no time is left, and remember that it was so."""
        if self.left() > 0:
            return False
        self.hits[f"the time limit of {self.seconds:.2g} s"] = None
        return True

    def process_bytes(self, weight: int) -> int:
        """Return what a process that runs a model of so many bytes may take: for weights in several forms, and values of a run."""
        return max(PROCESS_SHARE * self.bytes, PROCESS_BYTES) + PROCESS_SHARE * weight

    def allows(self, size: int) -> bool:
        """Return whether a value, or the inputs of a case, may take ``size`` bytes, and remember where not."""
        if size <= self.bytes:
            return True
        limit = f"{self.bytes >> 20} MiB" if self.bytes >> 20 else f"{self.bytes} bytes"
        self.hits[f"the memory limit of {limit}"] = None
        return False
