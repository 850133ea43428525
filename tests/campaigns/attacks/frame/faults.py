"""Ends or interrupts a piece of work at its n-th step, for all n, each time in a process forked for that."""

import itertools
import linecache
import os
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

__all__ = ["interrupted_at_each_line", "killed_at_each_file_event"]

_EVENTS = {
    *("open", "os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.chown"),
    *("shutil.copyfile", "shutil.rmtree", "tempfile.mkstemp", "tempfile.mkdtemp", "mmap.__new__", "os.utime", "os.listdir"),
}
_STRUCK, _NOT_REACHED, _FAILED = 70, 0, 71


def killed_at_each_file_event(work: Callable[[], object], step: int = 1) -> Iterator[int]:
    """Run ``work``, killed right before each ``step``-th thing it asks of the file system; yield after each what number it was."""
    yield from _struck(work, _kill_at, step)


def interrupted_at_each_line(work: Callable[[], object], *files: str, step: int = 1) -> Iterator[int]:
    """Run ``work``, with a KeyboardInterrupt at each ``step``-th line of the modules whose paths end with one of ``files``."""
    yield from _struck(work, lambda number: _interrupt_at(number, files), step)


def _struck(work: Callable[[], object], strike: Callable[[int], None], step: int) -> Iterator[int]:
    for number in itertools.count(1, step):
        child = os.fork()
        if not child:
            os._exit(_outcome(work, strike, number))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (_STRUCK, _NOT_REACHED), f"step {number}: ended with {code}"
        yield number
        if code == _NOT_REACHED:
            return


def _outcome(work: Callable[[], object], strike: Callable[[int], None], number: int) -> int:
    try:
        strike(number)
        work()
    except KeyboardInterrupt as error:
        print(f"step {number}: interrupted at {error}", flush=True)
        return _STRUCK
    except BaseException as error:
        print(f"step {number}: {type(error).__name__}: {error}", flush=True)
        return _FAILED
    return _NOT_REACHED


def _kill_at(number: int) -> None:
    left = [number]

    def hook(event: str, arguments: object) -> None:
        if event in _EVENTS:
            left[0] -= 1
            if not left[0]:
                os._exit(_STRUCK)

    sys.addaudithook(hook)


def _interrupt_at(number: int, files: tuple[str, ...]) -> None:
    left, seen = [number], set[tuple[int, int]]()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if not frame.f_code.co_filename.endswith(files) or frame.f_code.co_name in ("__exit__", "run_twice"):
            return None
        if event == "line" and not _cannot_be_interrupted(frame, seen):
            left[0] -= 1
            if not left[0]:
                sys.settrace(None)
                raise KeyboardInterrupt(f"{frame.f_code.co_filename}:{frame.f_lineno}")
        return trace

    sys.settrace(trace)


def _cannot_be_interrupted(frame: FrameType, seen: set[tuple[int, int]]) -> bool:
    """Whether Python lets no signal in at this line: at a ``try``, and where a ``with`` is left."""
    source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    if not source.startswith("with "):
        return source == "try:"
    key = id(frame), frame.f_lineno
    seen ^= {key}
    return key not in seen
