"""A Python subprocess for work that may never end or may crash."""

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
    """Return True if a Python interpreter can be started.

    Frozen programs, and programs that embed Python (such as uwsgi), have no interpreter that can be started.
    """
    if getattr(sys, "frozen", False):
        return False
    executable = _executable()
    return executable != sys.executable or os.path.basename(executable).lower().startswith(("python", "pypy"))


def _executable() -> str:
    """Return the path of the interpreter that ``multiprocessing`` would start.

    A program that embeds Python may have set this path with ``multiprocessing.set_executable``.
    """
    return os.fsdecode(multiprocessing.spawn.get_executable() or sys.executable or "")


def start(code: str, *arguments: str, **options: Any) -> "subprocess.Popen[bytes]":
    """Start ``python -c code`` with ``arguments``, and with the module search path of this process.

    ``options`` are passed to Popen. Raise OSError if the subprocess cannot be started.
    """
    path = os.pathsep.join(_search_path())
    env = {**os.environ, "PYTHONPATH": path}
    isolated = "import sys; sys.path[:] = filter(None, sys.path); "  # drops the working folder, as "-P" does from Python 3.11 on
    return subprocess.Popen([_executable(), "-c", isolated + code, *arguments], env=env, **options)


def _search_path() -> list[str]:
    """Return the absolute paths of the module search path, followed by the folder that contains ortscan.

    The entry for the working folder is left out, because that folder may have changed or been removed.
    """
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with contextlib.suppress(FileNotFoundError):
        return [os.path.abspath(entry) for entry in sys.path if entry] + [here]
    return [entry for entry in sys.path if os.path.isabs(entry)] + [here]


def end_with_parent() -> None:
    """End this process when its parent ends, if the system supports that."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill ``process`` and all its subprocesses, and close its pipes.

    ``process`` must have been started with ``start_new_session=True``.
    """
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
    """Wait until ``process`` ends, and return the cause, such as ``SIGKILL`` or ``exit code 1``."""
    code = process.wait()
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"exit code {code}"


def own_stdout() -> IO[bytes]:
    """Return a file that writes replies to the standard output of this process.

    From then on, everything else that this process prints to its standard output goes to stderr.
    """
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return replies


def limit_memory(size: int) -> None:
    """Limit the memory of this process to ``size`` bytes more than it uses now.

    The limit also holds for each process that this process starts. Two kinds of memory do not count: mapped files, and the 64 MiB
    that each thread reserves.
    """
    import resource

    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[5]) * resource.getpagesize()
    allowed = min((limit for limit in resource.getrlimit(resource.RLIMIT_DATA) if limit >= 0), default=used + size)
    most = min(used + size, allowed)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes, or None if the system does not report it.

    On Linux ``getrusage`` is not used, because it would include the memory of the parent.
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
