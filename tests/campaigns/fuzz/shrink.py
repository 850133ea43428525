"""Makes a failing case small: options, feeds, outputs, states and nodes go as long as the verdict stays."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from onnx import ModelProto

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.edits import edits_of, graphs_of, pruned
from tests.campaigns.fuzz.judging import Judgement
from tests.campaigns.fuzz.workers import Task, Workers

__all__ = ["count_nodes", "shrunk"]

TRIALS = 600
SECONDS = 120.0


def shrunk(case: Case, judgement: Judgement, workers: Workers, trials: int = TRIALS) -> tuple[Case, Judgement]:
    """A smaller case of the same verdict, judged in ``workers``; the case itself where nothing can go."""
    return _Shrinking(workers, _kind_of(judgement), trials).run(case, judgement)


def _kind_of(judgement: Judgement) -> str:
    """What must stay: the verdict, and which check said so."""
    words = judgement.detail.split(":")
    if judgement.verdict == "invalid":
        return f"invalid {words[0]}"
    if judgement.verdict == "foreign":
        return f"foreign {words[0]}"
    return f"{judgement.verdict} {'run' if ' run: ' in judgement.detail else ''}"


class _Shrinking:
    def __init__(self, workers: Workers, kind: str, trials: int):
        self.workers, self.kind, self.left = workers, kind, trials
        self.until = time.monotonic() + SECONDS

    def run(self, case: Case, judgement: Judgement) -> tuple[Case, Judgement]:
        best = (case, judgement)
        for simpler in (self._options, self._feeds):
            best = self._fixpoint(best, simpler)
        best = self._fixpoint(best, self._models)
        return self._fixpoint(best, self._options)

    def _fixpoint(self, best: tuple[Case, Judgement], candidates: Callable[[Case], Iterator[Case]]) -> tuple[Case, Judgement]:
        """Take the first candidate that fails alike, and go on behind it; until a whole round brings nothing."""
        skip = 0
        fresh = True
        while self.left > 0 and time.monotonic() < self.until:
            tried = skip
            for k, candidate in enumerate(candidates(best[0])):
                if k < skip:
                    continue
                tried = k
                self.left -= 1
                if self.left < 0 or time.monotonic() > self.until:
                    return best
                judgement = self.workers.judge(Task(case=candidate))
                if _kind_of(judgement) == self.kind:
                    best, skip, fresh = (candidate, judgement), k, True
                    break
            else:
                if not fresh or skip == 0:
                    return best
                skip, fresh = 0, False
                continue
            skip = tried
        return best

    def _options(self, case: Case) -> Iterator[Case]:
        for name in list(case.options):
            if case.kind == "optimize":
                yield replace(case, options={k: v for k, v in case.options.items() if k != name})

    def _feeds(self, case: Case) -> Iterator[Case]:
        for k in range(len(case.feeds) - 1, -1, -1):
            if len(case.feeds) > 1:
                yield replace(case, feeds=case.feeds[:k] + case.feeds[k + 1 :])

    def _models(self, case: Case) -> Iterator[Case]:
        for edit in edits_of(case.model):
            model = ModelProto()
            model.CopyFrom(case.model)
            try:
                edit(model)
                pruned(model)
                model.SerializeToString()
            except (ValueError, IndexError):
                continue
            kept = {info.name for info in model.graph.input}
            feeds = [{name: array for name, array in fed.items() if name in kept} for fed in case.feeds]
            options = {**case.options}
            for name in ("fix_shapes", "shapes"):
                if name in options:
                    options[name] = {key: shape for key, shape in options[name].items() if key in kept}
            if len(model.SerializeToString()) < len(case.model.SerializeToString()):
                yield replace(case, model=model, feeds=feeds, options=options)


def count_nodes(model: ModelProto) -> int:
    return sum(len(graph.node) for graph in graphs_of(model))
