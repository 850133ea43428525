"""Tells file systems that live in memory: writing through a memory map does not move a file's times there."""

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["lives_in_memory"]

_MOUNTS = Path("/proc/self/mountinfo")
_KINDS = (b"tmpfs", b"ramfs", b"hugetlbfs", b"devtmpfs")


def lives_in_memory(device: int) -> bool:
    """Return whether the files of ``device`` (``st_dev``) live in memory, as far as the system says so."""
    with suppress(OSError):
        there = f"{os.major(device)}:{os.minor(device)}".encode()
        for line in _MOUNTS.read_bytes().splitlines():
            place, _, kind = line.partition(b" - ")
            if place.split(b" ", 3)[2:3] == [there]:
                return kind.split(b" ", 1)[0] in _KINDS
    return False
