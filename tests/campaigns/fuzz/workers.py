"""Processes that judge models. One that dies, or takes too long, is replaced, and what it was at becomes the verdict."""

import multiprocessing
import resource
import signal
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess

from ortscan.base.child_process import end_with_parent
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.judging import Judgement, judge
from tests.campaigns.fuzz.model_builder import draw_case

__all__ = ["LIMIT", "Task", "Workers"]

LIMIT = 120.0
"""Seconds that one model may take in all."""

BEFORE = 15.0
"""Seconds that drawing a model and running it as it is may take."""

MEMORY = 8 << 30
SLOW = 10.0
_UNFIT = ("original", "drawing")


@dataclass(frozen=True)
class Task:
    """A model to judge: drawn from a seed, or given."""

    seed: int = 0
    number: int = 0
    kind: str = "optimize"
    idiom: str = ""
    targets: tuple[str, ...] = ()
    case: Case | None = None
    dead: frozenset[int] = frozenset()
    twice: bool = False

    def drawn(self) -> Case:
        return self.case or draw_case(self.seed, self.number, self.kind, self.idiom, self.targets)


@dataclass
class _Worker:
    process: ForkServerProcess
    pipe: Connection
    task: Task | None = None
    stage: str = ""
    since: float = 0.0


@dataclass
class Workers:
    """A pool of ``jobs`` processes."""

    jobs: int = 1
    limit: float = LIMIT
    _workers: list[_Worker] = field(default_factory=list)

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()
        self._workers.clear()

    def judged(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Judgement]]:
        """Judge the tasks, each as soon as a process is free; results come as they are ready."""
        waiting = iter(tasks)
        again: list[Task] = []
        while True:
            for worker in self._idle():
                task = again.pop() if again else next(waiting, None)
                if task is None:
                    break
                self._give(worker, task)
            busy = [worker for worker in self._workers if worker.task is not None]
            if not busy:
                return
            wait([worker.pipe for worker in busy], timeout=1.0)
            for worker in busy:
                yield from self._heard(worker, again)

    def judge(self, task: Task) -> Judgement:
        return next(judgement for _, judgement in self.judged([task]))

    def _idle(self) -> list[_Worker]:
        while len(self._workers) < self.jobs:
            self._workers.append(_started())
        return [worker for worker in self._workers if worker.task is None]

    def _give(self, worker: _Worker, task: Task) -> None:
        worker.task, worker.stage, worker.since = task, "drawing", time.monotonic()
        worker.pipe.send(task)

    def _heard(self, worker: _Worker, again: list[Task]) -> Iterator[tuple[Task, Judgement]]:
        task = worker.task
        assert task is not None
        try:
            while worker.pipe.poll():
                said = worker.pipe.recv()
                if isinstance(said, Judgement):
                    worker.task = None
                    yield task, said
                    return
                worker.stage = said
        except (EOFError, ConnectionError):
            worker.process.join()
            how = f"died by {_signal(worker.process.exitcode)}"
        else:
            limit = min(self.limit, BEFORE) if worker.stage.startswith(_UNFIT) else self.limit
            if time.monotonic() - worker.since < limit:
                return
            how = f"took over {limit:g} s"
        self._replace(worker)
        if worker.stage.startswith("original run") and "died" in how and not worker.stage.endswith(" 0"):
            again.append(replace(task, dead=task.dead | {int(worker.stage.split()[-1])}))
            return
        verdict = "unfit" if worker.stage.startswith(_UNFIT) else "slow" if "took" in how else "dead"
        yield task, Judgement(verdict, f"{worker.stage}: {how}")

    def _replace(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()


def _signal(code: int | None) -> str:
    return signal.Signals(-code).name if code is not None and code < 0 else f"exit {code}"


def _started() -> _Worker:
    context: ForkServerContext = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.campaigns.fuzz.preloaded"])
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _work(pipe: Connection) -> None:
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            task: Task = pipe.recv()
        except EOFError:
            return
        verdict = "undrawn"
        try:
            case = task.drawn()
            verdict = "foreign"
            judgement = judge(case, pipe.send, task.dead, task.twice)
        except Exception:
            pipe.send(Judgement(verdict, traceback.format_exc(limit=-3)))
            continue
        if judgement.seconds.get("rewrite", 0) > SLOW and judgement.verdict == "ok":
            judgement.verdict, judgement.detail = "slow", f"rewriting took {judgement.seconds['rewrite']:.1f} s"
        pipe.send(judgement)
