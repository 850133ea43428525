"""Make plain sessions run loops natively.

register(options)           registers ortscan's operators, its execution provider and the Python custom op, if they are available
register_plugin(options)    registers only the execution provider; raises an error if the provider is not available
"""

import importlib.util
import logging
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ortscan.base.forks import ForkSafeLock
from ortscan.custom_ops.registration import needed_version
from ortscan.custom_ops.registration import register as register_python_op
from ortscan.edge.border import wrap_errors
from ortscan.errors import OptionError
from ortscan.native.library import library_path, register_library, why_not
from ortscan.ort.sessions import entry_of
from ortscan.plugin.callback import answer_plan_requests
from rewrites.base.errors import is_raised_by
from rewrites.base.plain_text import one_line

if TYPE_CHECKING:
    import onnxruntime as ort

    from ortscan.modelio import ModelLike

__all__ = ["PROVIDER", "add_provider", "register", "register_plugin"]


PROVIDER = "OrtscanExecutionProvider"
_CPU = "CPUExecutionProvider"
_lock = ForkSafeLock()
_registered: "weakref.WeakSet[ort.SessionOptions]" = weakref.WeakSet()


_WITHOUT = {
    "session.disable_model_compile": "1",
    "session.disable_cpu_ep_fallback": "1",
    "session.load_model_format": "ORT",
    "ep.context_enable": "1",
    "optimization.minimal_build_optimizations": "save",
}
"""Entries with which onnxruntime either cannot create a session with compiled nodes, or saves the optimised model."""
_log = logging.getLogger(__name__)


@wrap_errors
def register(session_options: "ort.SessionOptions", model: "ModelLike | None" = None) -> "ort.SessionOptions":
    """Make plain sessions with ``session_options`` run loops natively. Return ``session_options``.

    Such sessions can also run models that ortscan wrote. This function registers:

    * ortscan's operators
    * ortscan's execution provider, if the library is installed and onnxruntime is new enough (see ``register_plugin``)
    * the Python custom op, if onnxruntime-extensions is installed

    The log says what is not registered, and why.

    This function may be called repeatedly, from any thread, before or after sessions are created. It also registers
    onnxruntime-extensions, so you need not call ``register_custom_ops_library`` for that library. If your code does call it, it
    must do so after this function.

        session = onnxruntime.InferenceSession("model.onnx", ortscan.register(onnxruntime.SessionOptions()))

    Args:
        session_options: the options to register on.
        model: a model that will run with these options, or None. This function checks that all that the model needs is available.

    Raises:
        OptionError: ``session_options`` has the wrong type, or no session can be created with it. Or ``model`` needs
            onnxruntime-extensions, which is not installed. Or other code registered onnxruntime-extensions before this function.
        UnsupportedModel: ``model`` needs a newer ortscan.
    """
    import onnxruntime as ort

    if not isinstance(session_options, ort.SessionOptions):
        raise OptionError(f"register needs onnxruntime.SessionOptions, not {type(session_options).__name__}.")
    if importlib.util.find_spec("onnxruntime_extensions") is not None or (model is not None and needed_version(model)):
        register_python_op(session_options, model)
    else:
        register_library(session_options)
    if (why := _why_not(session_options)) is None:
        try:
            add_provider(session_options, {})
        except OptionError as error:
            why = str(error)
    if why is not None:
        _log.info("Loops of models that ortscan has not rewritten run on onnxruntime: %s", why)
    return session_options


def _why_not(options: "ort.SessionOptions") -> str | None:
    """Return the reason why ortscan's provider cannot be added to ``options``, or None if it can be added."""
    if os.environ.get("ORTSCAN_NATIVE") == "0":
        return "the environment variable ORTSCAN_NATIVE is 0."
    if options.optimized_model_filepath:
        return "the options save the optimised model, which cannot contain compiled nodes."
    entry = next((key for key, value in _WITHOUT.items() if entry_of(options, key) == value), None)
    return f"the options have the entry {entry}." if entry else None


@wrap_errors
def register_plugin(session_options: "ort.SessionOptions") -> "ort.SessionOptions":
    """Make plain sessions with ``session_options`` run loops natively. Return ``session_options``.

    The models need not be rewritten by ortscan. onnxruntime still runs all other nodes, and loops that cannot be compiled. Do not
    pass a list of ``providers`` to the session, because such a list replaces the registered provider.

    This function may be called repeatedly, from any thread. If the environment variable ``ORTSCAN_NATIVE`` is 0, it does nothing.

    Args:
        session_options: the options to register on.

    Raises:
        OptionError: ``session_options`` has the wrong type, this ortscan has no library, or onnxruntime is older than 1.24.
    """
    import onnxruntime as ort

    if not isinstance(session_options, ort.SessionOptions):
        raise OptionError(f"register_plugin needs onnxruntime.SessionOptions, not {type(session_options).__name__}.")
    return session_options if os.environ.get("ORTSCAN_NATIVE") == "0" else add_provider(session_options, {})


def add_provider(options: "ort.SessionOptions", settings: Mapping[str, str]) -> "ort.SessionOptions":
    """Add ortscan's provider to ``options`` unless it has been added already. Return ``options``.

    ``settings`` are the settings of the provider. With ``{"ask": "1"}``, the provider requests a plan for each loop even if the
    model has stored plans.
    """
    path = library_path()
    if path is None:
        raise OptionError(f"register_plugin needs ortscan's library: {why_not()}")
    with _lock:
        if options not in _registered:
            _add_devices(options, path, settings)
            _registered.add(options)
    return options


def _add_devices(options: "ort.SessionOptions", path: Path, settings: Mapping[str, str]) -> None:
    """Add ortscan's provider to ``options``, and also the CPU provider.

    Without the CPU provider, onnxruntime would warn that it uses a device that was not added.
    """
    import onnxruntime as ort

    try:
        if not _devices(PROVIDER):
            ort.register_execution_provider_library(PROVIDER, str(path))
        ours, processors = _devices(PROVIDER), _devices(_CPU)
        if not ours:
            raise OptionError(f"register_plugin needs onnxruntime 1.24 or newer, but {ort.__version__} is installed.")
        answer_plan_requests(path)
        is_first = not options.has_providers()
        options.add_provider_for_devices(ours[:1], dict(settings))
        if is_first:  # otherwise the CPU may be added already, and onnxruntime rejects duplicates
            options.add_provider_for_devices(processors[:1], {})
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        raise OptionError(f"onnxruntime rejects ortscan's plugin: {one_line(error)}") from error


def _devices(provider: str) -> list[Any]:
    import onnxruntime as ort

    return [device for device in ort.get_ep_devices() if device.ep_name == provider]
