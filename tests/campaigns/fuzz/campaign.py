"""Run a campaign: draw models, count the verdicts, shrink and save the failures, and remember where it stopped."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.campaigns.fuzz.judging import BAD, Judgement
from tests.campaigns.fuzz.saving import save_failure
from tests.campaigns.fuzz.shrink import shrunk
from tests.campaigns.fuzz.workers import Task, Workers

__all__ = ["Campaign", "Figures"]

TWICE_EVERY = 20
"""Of so many models one is rewritten twice, to see whether the bytes are the same."""


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


@dataclass
class Campaign:
    """Models ``first`` and on of ``seed``. It ends after ``count`` models or ``seconds``, and writes to the folder ``out``."""

    seed: int
    kind: str
    count: int | None = None
    seconds: float | None = None
    first: int = 0
    jobs: int = 1
    targets: tuple[str, ...] = ()
    out: Path | None = None
    shrink: bool = True
    tell: Callable[[str], None] = lambda line: None

    def run(self) -> Figures:
        figures = Figures(self.seed, self.kind, self.first)
        begun = time.monotonic()
        with Workers(self.jobs) as workers, Workers(1) as shrinkers:
            for task, judgement in workers.judged(self._tasks(begun)):
                figures.add(task, judgement)
                if judgement.verdict in BAD:
                    self._found(task, judgement, shrinkers)
                if figures.models % 100 == 0:
                    figures.seconds = time.monotonic() - begun
                    self._keep(figures)
        figures.seconds = time.monotonic() - begun
        self._keep(figures)
        return figures

    def _tasks(self, begun: float) -> Iterator[Task]:
        number = self.first
        while self.count is None or number < self.first + self.count:
            if self.seconds is not None and time.monotonic() - begun > self.seconds:
                return
            yield Task(self.seed, number, self.kind, targets=self.targets, twice=number % TWICE_EVERY == 0)
            number += 1

    def _found(self, task: Task, judgement: Judgement, shrinkers: Workers) -> None:
        self.tell(f"{self.kind} {self.seed}/{task.number}: {judgement.verdict}: {judgement.detail[:200]}")
        case = task.drawn()
        small = shrunk(case, judgement, shrinkers) if self.shrink else None
        if self.out is not None:
            where = save_failure(self.out, case, judgement, small)
            self.tell(f"  saved as {where}")

    def _keep(self, figures: Figures) -> None:
        self.tell(figures.line())
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            name = f"figures-{self.kind}-{self.seed}-{self.first}.json"
            (self.out / name).write_text(json.dumps(figures.as_json(), indent=1), encoding="utf-8")
