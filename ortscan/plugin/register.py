"""``register``: what makes plain sessions run loops natively, and knows the operators of models that ortscan wrote."""

import importlib.util
import logging
import os
from typing import TYPE_CHECKING

from ortscan.custom_ops.registration import needed_version
from ortscan.custom_ops.registration import register as register_python_op
from ortscan.edge.border import one_sentence
from ortscan.errors import OptionError
from ortscan.native.library import register_library
from ortscan.ort.session_entries import entry_of
from ortscan.plugin.registration import put_on

if TYPE_CHECKING:
    import onnxruntime as ort

    from ortscan.modelio import ModelLike

__all__ = ["register"]

_WITHOUT = {
    "session.disable_model_compile": "1",
    "session.disable_cpu_ep_fallback": "1",
    "session.load_model_format": "ORT",
    "ep.context_enable": "1",
    "optimization.minimal_build_optimizations": "save",
}
"""Entries of options with which onnxruntime makes no session that has compiled nodes, or saves what it makes."""
_log = logging.getLogger(__name__)


@one_sentence
def register(session_options: "ort.SessionOptions", model: "ModelLike | None" = None) -> "ort.SessionOptions":
    """Make plain sessions with ``session_options`` run loops natively, and models that ortscan wrote, and give these back.

    Registers ortscan's operators; its execution provider (see ``register_plugin``), where there is the library and onnxruntime is
    new enough; and the Python custom op, where onnxruntime-extensions is there. What is left out, and why, is in the log. May be
    called any number of times, from any thread, before or after sessions were made. The library of onnxruntime-extensions is
    registered with it, so call this instead of ``register_custom_ops_library`` for that library; where that was called first, it
    must have been after this function, or a session that calls Python, had declared the op in this process.
    ``model``: a model to be run; UnsupportedModel says so where it needs a newer ortscan.

    Raises OptionError where ``session_options`` are none, ``model`` calls Python and onnxruntime-extensions is missing, that was
    registered too early or twice, or where the options are such that onnxruntime makes no session with them.
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
            put_on(session_options, {})
        except OptionError as error:
            why = str(error)
    if why is not None:
        _log.info("Loops of models that ortscan has not rewritten run as ever: %s", why)
    return session_options


def _why_not(options: "ort.SessionOptions") -> str | None:
    """Return why these options get no provider, None where they may."""
    if os.environ.get("ORTSCAN_NATIVE") == "0":
        return "the environment variable ORTSCAN_NATIVE is 0."
    if options.optimized_model_filepath:
        return "the options save the optimised model, which cannot hold compiled nodes."
    found = next((key for key, value in _WITHOUT.items() if entry_of(options, key) == value), None)
    return f"the options have the entry {found}." if found else None
