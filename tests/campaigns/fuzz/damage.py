"""Damaged models: nothing may come of one but a sentence, the model as it was, or a result that is no worse.

Model ``number`` of ``seed`` is the same in every run. Each is worked on in a process with limits; one that dies is replaced.
"""

import collections
import json
import logging
import multiprocessing
import random
import resource
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.campaigns.fuzz.damage_bases import bases
from tests.campaigns.fuzz.damage_judging import Verdict, compared, outcome
from tests.campaigns.fuzz.damage_kinds import damaged

__all__ = ["campaign", "model_of"]

MEMORY = 1 << 30
"""What one model may take above what the process had."""

_PATIENCE = 60.0
_GOOD = ("refused", "unchanged", "changed", "unparsed")


def model_of(seed: int, number: int) -> tuple[bytes, random.Random]:
    """Return a damaged model, and the generator that draws what is done with it."""
    draw = random.Random(f"{seed}:{number}")
    models = bases()
    base = min(draw.choices(models, k=2), key=len)
    return damaged(base, draw), draw


def campaign(
    seed: int = 0,
    count: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    out: Path | None = None,
    first: int = 0,
    tell: Callable[[str], object] = print,
) -> int:
    """Work on ``count`` models, or for ``seconds``; bad ones and the figures go to ``out``. Return how many were bad."""
    started = time.monotonic()
    verdicts: collections.Counter[str] = collections.Counter()
    bad: list[dict[str, Any]] = []
    numbers = iter(range(first, first + count if count is not None else 1 << 62))
    lock = threading.Lock()

    def work() -> None:
        with _Child(_worker) as worker, _Child(_oracle) as oracle:
            while seconds is None or time.monotonic() - started < seconds:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                what, verdict = _judged(seed, number, worker, oracle)
                with lock:
                    verdicts[verdict.how] += 1
                    if verdict.how not in _GOOD:
                        bad.append({"number": number, "what": what, "how": verdict.how, "detail": verdict.detail})
                        tell(f"{number} {what}: {verdict.how}: {verdict.detail}")
                        _keep(out, seed, number)
                    if not verdicts.total() % 2000:
                        tell(f"{verdicts.total()} models, {len(bad)} bad, {time.monotonic() - started:.0f} s")

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = time.monotonic() - started
    figures = {"seed": seed, "first": first, "models": verdicts.total(), "seconds": round(taken), **verdicts, "bad": bad}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"damage-{seed}-{first}.json").write_text(json.dumps(figures, indent=1))
    tell(json.dumps({key: value for key, value in figures.items() if key != "bad"}))
    return len(bad)


def _judged(seed: int, number: int, worker: "_Child", oracle: "_Child") -> tuple[str, Verdict]:
    answers = worker.ask((seed, number))
    what, verdict = answers[-1] if isinstance(answers[-1], tuple) else ("", Verdict("dead", str(answers[-1])))
    if verdict.how != "changed":
        return what, verdict
    said = oracle.ask((model_of(seed, number)[0], verdict.result))
    if said[-1] is not None and said[0] == "before" and len(said) == 2:
        return what, Verdict("changed", "the original ends the process")
    if said[-1] is not None:
        return what, Verdict("worse", str(said[-1]))
    return what, verdict


def _keep(out: Path | None, seed: int, number: int) -> None:
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"damaged-{seed}-{number}.onnx").write_bytes(model_of(seed, number)[0])


class _Child:
    """A process that answers questions, made anew where it died or took too long."""

    def __init__(self, work: Callable[[Connection], None]) -> None:
        self._work = work
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=self._work, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, question: Any) -> list[Any]:
        """Return the answers up to the last, which is text where there is none."""
        self._pipe.send(question)
        return list(self._answers())

    def _answers(self) -> Iterator[Any]:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                if not self._pipe.poll(max(0.0, end - time.monotonic())):
                    yield f"no answer within {_PATIENCE:g} s"
                    break
                answer = self._pipe.recv()
            except (EOFError, ConnectionError):
                self._process.join()
                yield f"the process ended with {self._process.exitcode}"
                break
            yield answer
            if not isinstance(answer, str) or answer.startswith("worse: "):
                return
        self._stop()
        self._start()

    def _stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def __enter__(self) -> "_Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()


def _worker(pipe: Connection) -> None:
    import ortscan

    for base in bases()[:3]:
        ortscan.optimize(base)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    while True:
        try:
            seed, number = pipe.recv()
        except EOFError:
            return
        content, draw = model_of(seed, number)
        pipe.send(outcome(content, draw))


def _oracle(pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    while True:
        try:
            before, after = pipe.recv()
        except EOFError:
            return
        worse = compared(before, after, pipe.send)
        pipe.send(None if worse is None else f"worse: {worse}")
