"""A process that imports everything once and forks for each attack.

It reads the name of an attack and the folder of its box on each line, and writes a line of JSON about how the attack ended.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import onnxruntime  # noqa: F401 - forks find it imported

import ortscan.session.inference_session
import ortscan.verification.verifier  # noqa: F401
from ortscan import api  # noqa: F401
from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.registry import Attack, all_attacks, faulty_attacks

__all__ = ["play", "serve", "watched"]

_SAID = "said.txt"


def serve() -> None:
    """Run what is asked for until the end of the input."""
    attacks = {**all_attacks(), **faulty_attacks()}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        wanted = json.loads(line)
        box = Box(Path(wanted["box"]))
        with (box.root.parent / f"{box.root.name}.{_SAID}").open("w+b") as said:
            outcome = watched(_started(attacks[wanted["name"]], box, said.fileno()), attacks[wanted["name"]].seconds)
            said.seek(0)
            outcome["said"] = said.read().decode(errors="replace")
        print(json.dumps(outcome), file=answers, flush=True)


def _started(attack: Attack, box: Box, said: int) -> int:
    child = os.fork()
    if not child:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        play(attack, box, said)
    return child


def play(attack: Attack, box: Box, said: int) -> NoReturn:
    """Run ``attack`` in this process, which ends with it; what is printed goes to the descriptor ``said``."""
    os.dup2(said, 1)
    os.dup2(said, 2)
    faulthandler.enable()
    code = 1
    try:
        os.environ.update(box.environment)
        tempfile.tempdir = None
        os.chdir(box.work)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (attack.memory, attack.memory))
        attack.run(box)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


_STEP = 0.005


def watched(child: int, seconds: float) -> dict[str, Any]:
    """Give how the leader ``child`` of a session of its own ended, within ``seconds``, and what it took."""
    started = time.monotonic()
    late = False
    while True:
        found, status, used = os.wait4(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() - started > seconds and not late:
            late = True
            os.killpg(child, signal.SIGKILL)
        time.sleep(_STEP)
    took = time.monotonic() - started
    orphans = _end_group(child)
    code = os.waitstatus_to_exitcode(status)
    return {"code": code, "late": late, "orphans": orphans, "seconds": round(took, 3), "peak": used.ru_maxrss << 10}


def _end_group(leader: int) -> bool:
    """End what the process has left running; say whether there was any."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
        return True
    return False


if __name__ == "__main__":
    serve()
