"""Remembers which model files of a cache were found whole, so that each is read for that only once.

It holds as long as the file's size and times do and the machine has not been started anew: losing power is what damages files
without a trace in their times. Where the machine does not say when it was started, nothing is remembered.
"""

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from ortscan.cache.digest import TIME_STEP_NS, identity_of_file
from ortscan.cache.notes import Notes
from ortscan.cache.store import Entry

__all__ = ["is_known_whole", "is_whole"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def is_known_whole(entry: Entry, notes: Notes) -> bool:
    """Whether the model file of ``entry`` was found whole before, and is still the same."""
    if entry.model is None:
        return True
    with suppress(OSError):
        return bool(_boot()) and notes.read(_name(entry)).get("whole") == [_boot(), *identity_of_file(str(entry.model))]
    return False


def is_whole(entry: Entry, notes: Notes) -> bool:
    """Whether the model file of ``entry`` is what was put there: all of it is read."""
    if entry.model is None:
        return True
    with suppress(OSError):
        identity, started = identity_of_file(str(entry.model)), time.time_ns()
        if not entry.is_whole:
            return False
        is_old = started - int(identity[-1]) > TIME_STEP_NS
        if _boot() and is_old and identity_of_file(str(entry.model)) == identity:
            notes.write(_name(entry), {"whole": [_boot(), *identity]})
        return True
    return False


def _name(entry: Entry) -> str:
    return f"whole {os.path.realpath(entry.folder)}"


@cache
def _boot() -> str:
    with suppress(OSError):
        return _BOOT.read_text().strip()
    return ""
