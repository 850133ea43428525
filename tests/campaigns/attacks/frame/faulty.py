"""Attacks that are not survived, each in another way: the frame must notice them all."""

import os
import subprocess
import sys
import time

from tests.campaigns.attacks.frame.box import Box
from tests.campaigns.attacks.frame.demands import refused, survived
from tests.campaigns.attacks.frame.registry import attack

__all__: list[str] = []


@attack("raises")
def _raises(box: Box) -> None:
    raise RuntimeError("a foreign exception")


@attack("is let through")
def _passes(box: Box) -> None:
    refused(lambda: None)


@attack("says two lines")
def _two_lines(box: Box) -> None:
    from ortscan.errors import OrtscanError

    class Talkative(OrtscanError):
        def __str__(self) -> str:
            return "one\ntwo"

    def fail() -> None:
        raise Talkative

    survived(fail)


@attack("dies")
def _dies(box: Box) -> None:
    os.abort()


@attack("exits")
def _exits(box: Box) -> None:
    sys.exit(0)


@attack("hangs", seconds=0.3)
def _hangs(box: Box) -> None:
    time.sleep(30)


@attack("fills the memory", memory=1 << 30)
def _fills(box: Box) -> None:
    bytearray(2 << 30)


@attack("leaves a temporary file")
def _leaves(box: Box) -> None:
    (box.tmp / "left").touch()


@attack("plants a file")
def _plants(box: Box) -> None:
    (box.work / ".." / "outside" / "planted").touch()


@attack("changes a file")
def _changes(box: Box) -> None:
    (box.outside / "secret").write_bytes(b"changed")


@attack("links a file")
def _links(box: Box) -> None:
    os.link(box.outside / "secret", box.work / "link")


@attack("leaves a process")
def _orphan(box: Box) -> None:
    subprocess.Popen(["sleep", "30"])
