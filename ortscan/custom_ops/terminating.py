"""``RunOptions.terminate`` between the steps of a loop in Python; between nodes onnxruntime looks at it itself."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["heeding", "not_terminated"]

_SAID = "[ONNXRuntimeError] : 1 : FAIL : Exiting due to terminate flag being set to true."
_going: dict[object, tuple[int, Any]] = {}


def heeding(arguments: Iterable[Any], thread: int = 0) -> Callable[[], None]:
    """Have the RunOptions among a run's arguments heeded until what is given is called; ``thread``: the one it is in, if known."""
    from onnxruntime import RunOptions

    token = object()
    for each in arguments:
        if isinstance(each, RunOptions):
            _going[token] = thread, each
    return lambda: _going.pop(token, None) and None


def not_terminated() -> None:
    """Raise what onnxruntime raises where the run this thread is in is to end.

    In a thread of onnxruntime's the run is known only where it is the only one.
    """
    if not _going:
        return
    going = list(_going.values())
    mine = [options for thread, options in going if thread == threading.get_ident()]
    if any(options.terminate for options in mine or ([going[0][1]] if len(going) == 1 else [])):
        from onnxruntime.capi.onnxruntime_pybind11_state import Fail

        raise Fail(_SAID)
