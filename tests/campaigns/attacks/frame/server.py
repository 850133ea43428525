"""A process that has imported everything once and is forked for each attack.

It reads the name of an attack and the folder of its box on each line, and writes a line of JSON about how it ended.
"""

import json
import os
import sys
from pathlib import Path

import onnxruntime  # noqa: F401 - forks find it imported

import ortscan.session.inference_session
import ortscan.verification.verifier  # noqa: F401
from ortscan import api  # noqa: F401
from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.child import play
from tests.campaigns.attacks.frame.registry import Attack, all_attacks, faulty_attacks
from tests.campaigns.attacks.frame.watching import watched

__all__ = ["serve"]

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


if __name__ == "__main__":
    serve()
