"""A Python process of our own, for what may never end or may end the process it runs in."""

import contextlib
import multiprocessing.spawn
import os
import signal
import subprocess
import sys
from typing import IO, Any

__all__ = ["CAN_LIMIT_MEMORY", "can_start", "cause", "end", "end_with_parent", "limit_memory", "own_stdout", "peak_memory", "start"]

CAN_LIMIT_MEMORY = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1


def can_start() -> bool:
    """Whether there is an interpreter to start: not in a frozen program, nor in one that has Python inside it, such as uwsgi."""
    if getattr(sys, "frozen", False):
        return False
    executable = _executable()
    return executable != sys.executable or os.path.basename(executable).lower().startswith(("python", "pypy"))


def _executable() -> str:
    """Return what ``multiprocessing`` starts too, which a program with Python inside may have set."""
    return os.fsdecode(multiprocessing.spawn.get_executable() or sys.executable or "")


def start(code: str, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start ``python -c code`` with this process' modules; ``options`` are those of Popen. Raises OSError."""
    path = os.pathsep.join(_search_path())
    env = {**os.environ, "PYTHONPATH": path}
    apart = "import sys; sys.path[:] = filter(None, sys.path); "  # not the working folder, as "-P" has it from Python 3.11 on
    return subprocess.Popen([_executable(), "-c", apart + code, *arguments], env=env, **options)


def _search_path() -> list[str]:
    """Return where modules are looked for; what an empty entry stands for, the working folder, may be another by now, or gone."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with contextlib.suppress(FileNotFoundError):
        return [os.path.abspath(entry) for entry in sys.path if entry] + [here]
    return [entry for entry in sys.path if os.path.isabs(entry)] + [here]


def end_with_parent() -> None:
    """Let this process end as soon as the one that started it does, where the system can tell."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end(process: "subprocess.Popen[bytes]") -> None:
    """End ``process``, which leads a session of its own, and all that it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def cause(process: "subprocess.Popen[bytes]") -> str:
    """Say how ``process`` came to its end."""
    code = process.wait()
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"


def own_stdout() -> IO[bytes]:
    """Return the standard output for replies alone; what anything else prints goes to the standard error."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return replies


def limit_memory(size: int) -> None:
    """Let this process and those it starts take ``size`` bytes of their own each beside what this one takes now.

    What is mapped from files does not count, and neither does what threads only reserve: 64 MiB for each.
    """
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        taken = int(file.read().split()[5]) * resource.getpagesize()
    least = min((one for one in resource.getrlimit(resource.RLIMIT_DATA) if one >= 0), default=taken + size)
    most = min(taken + size, least)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def peak_memory() -> int | None:
    """Return how many bytes of memory this process has had at most at a time, None where the system does not tell.

    Not what ``getrusage`` has on Linux: that begins with what the process had that started this one.
    """
    with (
        contextlib.suppress(OSError, ValueError, IndexError),
        open("/proc/self/status", encoding="ascii", errors="replace") as file,
    ):
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:")), None)
    if sys.platform != "darwin":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
