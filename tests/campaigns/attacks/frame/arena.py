"""Runs attacks one after the other and says what came of each."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.registry import Attack

__all__ = ["Arena", "Outcome"]

_ROOT = Path(__file__).parents[4]
_NOT_FOUND_OUT = "the process that runs attacks has ended"


@dataclass(frozen=True)
class Outcome:
    """``failure``: what went wrong, empty where the attack was survived. ``peak``: the most bytes the process had in memory."""

    failure: str
    seconds: float
    peak: int


class Arena:
    """A context in which attacks run; they share the process they are forked from."""

    def __enter__(self) -> "Arena":
        self._folder = tempfile.TemporaryDirectory(prefix="attacks-", ignore_cleanup_errors=True)
        self._server = self._started()
        self._count = 0
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.terminate()
        self._server.communicate()
        self._folder.cleanup()

    def run(self, attack: Attack) -> Outcome:
        """Run one attack in a box of its own."""
        self._count += 1
        root = Path(self._folder.name, str(self._count))
        root.mkdir()
        box = Box.make(root)
        before = box.around()
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps({"name": attack.name, "box": str(root)}) + "\n")
        self._server.stdin.flush()
        line = self._server.stdout.readline()
        assert line, _NOT_FOUND_OUT
        answer = json.loads(line)
        return Outcome(_failure(attack, answer, box, before), answer["seconds"], answer["peak"])

    def _started(self) -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": str(_ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        line = [sys.executable, "-m", "tests.campaigns.attacks.frame.server"]
        return subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=_ROOT)


def _failure(attack: Attack, answer: dict[str, object], box: Box, before: dict[str, tuple[object, ...]]) -> str:
    after = box.around()
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    faults = {
        f"took longer than {attack.seconds} s": answer["late"],
        f"ended with {answer['code']}": answer["code"] and not answer["late"],
        "left a process": answer["orphans"] and not answer["late"],
        f"touched {changed}": changed,
        f"left temporary files: {box.left()}": box.left() and not answer["late"],
    }
    found = [words for words, holds in faults.items() if holds]
    return f"{attack.name}: {'; '.join(found)}\n{answer['said']}" if found else ""
