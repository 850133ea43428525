"""A `Runner` in a subprocess, for models that may crash onnxruntime.

The subprocess is started with ``python -c``. It reads pickled requests from its standard input, and writes pickled replies to its
standard output. Unlike ``multiprocessing``, this works if the main module cannot be imported. The subprocess imports little besides
onnxruntime, so it starts fast.
"""

import contextlib
import functools
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from ortscan.base import child_process
from ortscan.running.runner import TOO_SLOW, Runner, RunOutcome, SessionModel

if TYPE_CHECKING:
    from ortscan.modelio.source import ModelSource

__all__ = ["OwnProcessRunner", "serve"]

_GRACE = 2.0
_GRACE_AT_START = 5.0
_LONGEST_START = 600.0
_NOTHING = object()
_CHILD = "from ortscan.running.own_process import serve; serve()"


class OwnProcessRunner:
    """A `Runner` in a subprocess.

    If a run crashes the subprocess, this run counts as failed, and the next run starts another subprocess. If no Python interpreter
    can be started, the session runs in this process instead.

    Args:
        source: the model.
        outputs: the outputs to compute, in order.
        providers: execution providers.
        optimise: True if onnxruntime may optimise the graph.
        seconds: the time limit for creating the session.
        memory: the memory limit of the subprocess in bytes, if the system supports limits.
    """

    def __init__(
        self,
        source: "ModelSource",
        outputs: Sequence[str],
        providers: Sequence[Any],
        optimise: bool = True,
        seconds: float | None = None,
        memory: int | None = None,
    ):
        self.outputs = list(outputs)
        self.loading_timed_out = False
        self._recipe = (SessionModel(source.target, source.folder), self.outputs, list(providers), None, optimise, seconds)
        self._seconds = _LONGEST_START if seconds is None else seconds
        self._memory = memory if child_process.CAN_LIMIT_MEMORY else None
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._here = None if child_process.can_start() else Runner(*self._recipe)
        if self._here is None:
            self._spawn()

    @functools.cached_property
    def error(self) -> str | None:
        """The reason why there is no session, or None.

        Reading this attribute waits until the subprocess has created the session.
        """
        if self._here is None:
            return self._make_session()
        self.loading_timed_out = self._here.loading_timed_out
        return self._here.error

    def run(self, feed: Mapping[str, Any], seconds: float | None = None) -> RunOutcome:
        """Run the model once on the inputs ``feed``, with a time limit of ``seconds``, as `Runner.run` does."""
        if self._here is not None:
            return self._here.run(feed, seconds)
        started, error = time.perf_counter(), self.error
        if self._process is None:
            self._spawn()
            error = self._make_session()
        reply = None if error is not None else self._ask((feed, seconds), seconds, _GRACE)
        if isinstance(reply, RunOutcome):
            return reply
        cause, duration = error or self._exit_cause(), time.perf_counter() - started
        if self._killed:
            return RunOutcome(None, f"still running after {duration:.2g} s", duration, timed_out=True)
        return RunOutcome(None, cause, duration, died=True)

    def peak_bytes(self) -> int | None:
        """Return the peak memory use of the session and its runs in bytes, or None if it is unknown."""
        reply = None if self._process is None else self._ask(None, None, _GRACE)
        return reply if isinstance(reply, int) else None

    def close(self) -> None:
        """Stop the subprocess."""
        if self._process is not None:
            self._process.kill()
            self._exit_cause()

    def _spawn(self) -> None:
        self._process = child_process.start(_CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def _make_session(self) -> str | None:
        """Create the session in the subprocess. If that fails, return the reason, else None."""
        reply = self._ask((self._memory, self._recipe), self._seconds, _GRACE_AT_START)
        if reply is _NOTHING:
            cause = self._exit_cause()
            self.loading_timed_out = self._killed
            return TOO_SLOW.format(self._seconds) if self.loading_timed_out else cause
        error, self.loading_timed_out = reply
        return str(error) if error is not None else None

    def _ask(self, request: object, seconds: float | None, grace: float) -> Any:
        """Send a request to the subprocess, and return the reply.

        Kill the subprocess if there is no reply after ``seconds`` plus ``grace`` seconds. If the subprocess ends without a reply,
        return ``_NOTHING``.
        """
        self._killed = False
        requests, replies = _pipes(self._process)
        timer = None if seconds is None else threading.Timer(seconds + grace, self._kill)
        try:
            if timer is not None:
                timer.start()
            pickle.dump(request, requests)
            requests.flush()
            return pickle.load(replies)
        except (EOFError, OSError, pickle.UnpicklingError):
            return _NOTHING
        finally:
            if timer is not None:
                timer.cancel()

    def _kill(self) -> None:
        self._killed = True
        if self._process is not None:
            self._process.kill()

    def _exit_cause(self) -> str:
        process, self._process = self._process, None
        assert process is not None
        requests, replies = _pipes(process)
        with contextlib.suppress(OSError):
            requests.close()
        replies.close()
        return f"onnxruntime crashes its process ({child_process.cause(process)})"


def _pipes(process: "subprocess.Popen[bytes] | None") -> tuple[IO[bytes], IO[bytes]]:
    assert process is not None and process.stdin is not None and process.stdout is not None  # noqa: PT018
    return process.stdin, process.stdout


def serve() -> None:
    """Run in the subprocess: create the session, reply, and answer requests until the input ends."""
    child_process.end_with_parent()
    replies = child_process.own_stdout()
    memory, recipe = pickle.load(sys.stdin.buffer)
    import onnxruntime  # noqa: F401  # imported now, so that its memory does not count as the session's

    if memory is not None:
        child_process.limit_memory(memory)
    before = child_process.peak_memory()
    runner = Runner(*recipe)
    _reply(replies, (runner.error, runner.loading_timed_out))
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            request = pickle.load(sys.stdin.buffer)
            if request is not None:
                _reply(replies, runner.run(*request))
            else:
                after = child_process.peak_memory()
                _reply(replies, None if before is None or after is None else after - before)


def _reply(stream: IO[bytes], answer: object) -> None:
    pickle.dump(answer, stream)
    stream.flush()
