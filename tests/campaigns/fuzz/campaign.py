"""A long run: many models, all verdicts counted, failures shrunk and saved, and where it stopped remembered."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.campaigns.fuzz.figures import Figures
from tests.campaigns.fuzz.judging import BAD, Judgement
from tests.campaigns.fuzz.saving import save_failure
from tests.campaigns.fuzz.shrink import shrunk
from tests.campaigns.fuzz.workers import Task, Workers

__all__ = ["Campaign"]

TWICE_EVERY = 20
"""Of so many models one is rewritten twice, to see whether the bytes are the same."""


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
