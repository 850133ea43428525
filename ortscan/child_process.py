"""A Python process of our own, for what may never end or may end the process it runs in."""

import contextlib
import multiprocessing.spawn
import os
import signal
import subprocess
import sys
from typing import IO, Any

__all__ = ["CAN_LIMIT_MEMORY", "cause", "end", "limit_memory", "own_stdout", "start"]

CAN_LIMIT_MEMORY = sys.platform == "linux"


def start(code: str, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start ``python -c code`` with this process' modules; ``options`` are those of Popen."""
    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
    executable = os.fsdecode(multiprocessing.spawn.get_executable() or sys.executable)
    env = {**os.environ, "PYTHONPATH": path}
    return subprocess.Popen([executable, "-P", "-c", code, *arguments], env=env, **options)


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
