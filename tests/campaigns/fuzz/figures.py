"""What a campaign brought, counted."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.campaigns.fuzz.judging import BAD, Judgement
from tests.campaigns.fuzz.workers import Task

__all__ = ["Figures"]


@dataclass
class Figures:
    """Counts of verdicts, of reasons to refuse, and of reasons why a model was thrown away."""

    seed: int
    kind: str
    first: int = 0
    seconds: float = 0.0
    verdicts: Counter[str] = field(default_factory=Counter)
    changed: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    unfit: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, Any]] = field(default_factory=list)

    @property
    def models(self) -> int:
        return sum(self.verdicts.values())

    @property
    def judged(self) -> int:
        """Models that onnxruntime runs."""
        return self.models - self.verdicts["unfit"] - self.verdicts["undrawn"]

    def add(self, task: Task, judgement: Judgement) -> None:
        self.verdicts[judgement.verdict] += 1
        self.changed += judgement.changed
        reason = _stem(judgement.detail)
        if judgement.verdict == "refused":
            self.refusals[reason] += 1
        elif judgement.verdict in ("unfit", "undrawn"):
            self.unfit[reason] += 1
        elif judgement.verdict in BAD:
            self.bad.append({"number": task.number, "verdict": judgement.verdict, "detail": judgement.detail})

    def line(self) -> str:
        bad = ", ".join(f"{self.verdicts[name]} {name}" for name in BAD if self.verdicts[name]) or "nothing bad"
        speed = self.models / self.seconds if self.seconds else 0.0
        return (
            f"{self.kind} of seed {self.seed} up to {self.first + self.models}: {self.judged} judged, {self.changed} changed, "
            f"{self.verdicts['refused']} refused, {self.models - self.judged} unfit, {bad}; {speed:.1f} a second"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "kind": self.kind,
            "first": self.first,
            "models": self.models,
            "judged": self.judged,
            "changed": self.changed,
            "verdicts": dict(self.verdicts),
            "seconds": round(self.seconds, 1),
            "bad": self.bad,
            "refusals": dict(self.refusals.most_common(60)),
            "unfit": dict(self.unfit.most_common(60)),
        }


def _stem(detail: str) -> str:
    """A message without its numbers, so that like ones count together."""
    return "".join("#" if c.isdigit() else c for c in detail)[:200].replace("##", "#").replace("##", "#")
