"""The process of one attack: its limits, its folders, and how it says what went wrong."""

import faulthandler
import os
import resource
import sys
import tempfile
import traceback
from typing import NoReturn

from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.registry import Attack

__all__ = ["play"]


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
