"""``register_plugin``: makes plain sessions run loops natively."""

import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.base.fork_safe import ForkSafeLock
from ortscan.edge.border import one_sentence
from ortscan.errors import OptionError
from ortscan.native.library import library_path, why_not
from ortscan.plugin.callback import answer_questions
from rewrites.base.plain_text import one_line
from rewrites.base.raised_by import is_raised_by

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["PROVIDER", "put_on", "register_plugin"]

PROVIDER = "OrtscanExecutionProvider"
_CPU = "CPUExecutionProvider"
_lock = ForkSafeLock()
_registered: "weakref.WeakSet[ort.SessionOptions]" = weakref.WeakSet()


@one_sentence
def register_plugin(session_options: "ort.SessionOptions") -> "ort.SessionOptions":
    """Make plain sessions with ``session_options`` run the loops of unmodified models natively, and give these back.

    May be called any number of times, from any thread. Loops that have no plan, and all other nodes, run as ever. A list of
    ``providers`` given to the session replaces what is registered here; so give none. Does nothing where ``ORTSCAN_NATIVE=0`` is in
    the environment.

    Raises OptionError where ``session_options`` are none, this ortscan has no library, or onnxruntime is older than 1.24.
    """
    import onnxruntime as ort

    if not isinstance(session_options, ort.SessionOptions):
        raise OptionError(f"register_plugin needs onnxruntime.SessionOptions, not {type(session_options).__name__}.")
    return session_options if os.environ.get("ORTSCAN_NATIVE") == "0" else put_on(session_options, {})


def put_on(options: "ort.SessionOptions", settings: Mapping[str, str]) -> "ort.SessionOptions":
    """Add the provider with ``settings`` once, and give the options back.

    ``ask`` among them: the planner is asked, whatever a model holds.
    """
    path = library_path()
    if path is None:
        raise OptionError(f"register_plugin needs ortscan's library: {why_not()}")
    with _lock:
        if options not in _registered:
            _put_on(options, path, settings)
            _registered.add(options)
    return options


def _put_on(options: "ort.SessionOptions", path: Path, settings: Mapping[str, str]) -> None:
    """Add our device, and the CPU too: onnxruntime warns where it takes what nobody named."""
    import onnxruntime as ort

    try:
        if not _devices(PROVIDER):
            ort.register_execution_provider_library(PROVIDER, str(path))
        ours, processors = _devices(PROVIDER), _devices(_CPU)
        if not ours:
            raise OptionError(f"register_plugin needs onnxruntime 1.24 or newer, and this is {ort.__version__}.")
        answer_questions(path)
        is_first = not options.has_providers()
        options.add_provider_for_devices(ours[:1], dict(settings))
        if is_first:  # else the CPU may be among them, and a second time is refused
            options.add_provider_for_devices(processors[:1], {})
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        raise OptionError(f"onnxruntime does not take ortscan's plugin: {one_line(error)}") from error


def _devices(provider: str) -> list[Any]:
    import onnxruntime as ort

    return [device for device in ort.get_ep_devices() if device.ep_name == provider]
