"""Declare the Python custom op to onnxruntime-extensions, and register the op on session options.

The op is declared once in a process, before any session uses it. If onnxruntime-extensions is registered twice on the same
SessionOptions, every session with these options fails. So this module remembers the SessionOptions that have the library. The
caller may also have registered the library. To find that out, onnxruntime loads a tiny model with an operator of the library. A
config entry cannot record the registration, because onnxruntime also copies config entries to options without the library.
"""

import functools
import importlib
import importlib.util
import json
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ortscan.base.forks import ForkSafeLock
from ortscan.custom_ops.calls import run_call
from ortscan.custom_ops.ending import watch_exit
from ortscan.custom_ops.failures import run_safely
from ortscan.custom_ops.slots import ArrayResult, takes_array_results
from ortscan.edge.border import wrap_errors
from ortscan.errors import OptionError, UnsupportedModel
from ortscan.native.library import register_library
from ortscan.ort.sessions import entry_of
from rewrites.base.errors import is_raised_by
from rewrites.base.plain_text import one_line
from rewrites.python_ops.names import DOMAIN, METADATA, OPERATOR, VERSION
from rewrites.python_ops.wire import SLOTS

if TYPE_CHECKING:
    import onnxruntime as ort

    from ortscan.modelio import ModelLike

__all__ = ["needed_version", "register", "register_python"]

_FORMAT = "session.load_model_format"
_ABSENT, _TWICE = "is not a registered function/op", "Conflicting with a registered kernel"
_TOO_EARLY = (
    "onnxruntime-extensions was registered on these SessionOptions before ortscan had declared its op; call "
    "ortscan.register(session_options) instead of register_custom_ops_library."
)
_WRONG_TWICE = (
    "onnxruntime-extensions was registered twice on these SessionOptions, so onnxruntime cannot create a session with them; call "
    "ortscan.register on new SessionOptions, and do not call register_custom_ops_library for that library."
)
_NOT_THERE = "onnxruntime-extensions was registered on these SessionOptions, but onnxruntime does not find ortscan's op in it."
_declaring = ForkSafeLock()
_lock = ForkSafeLock()
_registered: "weakref.WeakSet[ort.SessionOptions]" = weakref.WeakSet()


def library_path() -> str:
    """Return the path of the library of onnxruntime-extensions. Raise OptionError if it is missing."""
    return str(_extensions().get_library_path())


def declare() -> None:
    """Declare the op once in a process."""
    with _declaring:
        _declare_once()


@functools.cache
def _declare_once() -> Any:
    library = _extensions()
    watch_exit()
    types = [getattr(library.PyCustomOpDef, f"dt_{slot}") for slot in SLOTS]
    text = library.PyCustomOpDef.dt_string
    declared = library.onnx_op(op_type=f"{DOMAIN}::{OPERATOR}", inputs=types, outputs=types, attrs={"spec": text})(_call)
    _ResultForm.is_array = takes_array_results(declared)
    return declared


class _ResultForm:
    """The type in which the op returns its results.

    ``is_array`` is True if the type is ``ArrayResult``, which some versions of the library accept. It is False for numpy arrays.
    """

    is_array = False


def _call(*slots: Any, spec: str = "") -> tuple[Any, ...]:
    results = run_safely(run_call, spec, slots)
    return tuple([ArrayResult(array) for array in results]) if _ResultForm.is_array else tuple(results)


def has_extensions() -> bool:
    """Return True if onnxruntime-extensions is installed."""
    return importlib.util.find_spec("onnxruntime_extensions") is not None


def _extensions() -> Any:
    try:
        return importlib.import_module("onnxruntime_extensions")
    except ImportError as error:
        raise OptionError(
            f"Python custom ops need onnxruntime-extensions (ortscan[custom-ops] has it), which cannot be imported: {error}."
        ) from None


def needed_version(model: "ModelLike") -> int:
    """Return the version of the op in the metadata of ``model``, or 0 if the model does not call the op.

    Raise the errors of ``load``.
    """
    from ortscan.modelio import load

    entry = load(model).model.metadata_props.get(METADATA)
    try:
        version = json.loads(entry)["version"] if entry else 0
    except (ValueError, LookupError, TypeError, RecursionError):
        return 0
    return version if isinstance(version, int) else 0


@wrap_errors
def register(session_options: "ort.SessionOptions", model: "ModelLike | None" = None) -> "ort.SessionOptions":
    """Register ortscan's Python custom op on ``session_options``, and return these options.

    This function may be called repeatedly, from any thread, before or after sessions are created. It also registers
    onnxruntime-extensions, so you need not call ``register_custom_ops_library`` for that library. If you call it, do so after
    ``register``.

    Args:
        session_options: the options to register the op on.
        model: a model that will run with these options. A model that calls Python is rejected if onnxruntime-extensions is missing.

    Raises:
        OptionError: ``session_options`` has the wrong type or is unusable for a session, or onnxruntime-extensions is missing for
            ``model`` or was registered too early or twice.
        UnsupportedModel: ``model`` needs a newer ortscan.
    """
    import onnxruntime as ort

    if not isinstance(session_options, ort.SessionOptions):
        raise OptionError(f"register needs onnxruntime.SessionOptions, not {type(session_options).__name__}.")
    wanted = 0 if model is None else needed_version(model)
    if wanted > VERSION:
        raise UnsupportedModel(f"the model needs version {wanted} of the Python op; this ortscan has version {VERSION}.")
    register_library(session_options)
    if wanted or has_extensions():
        register_python(session_options)
    return session_options


def register_python(session_options: "ort.SessionOptions") -> None:
    """Register the Python custom op on ``session_options``. Raise OptionError as ``register`` does."""
    with _lock:
        if session_options in _registered:
            return
        declare()
        is_registered = _knows_operator(session_options, _probe_of_library())
        if not is_registered:
            _register_op(session_options)
        if not _knows_operator(session_options, _probe_of_op()):
            raise OptionError(_TOO_EARLY if is_registered else _NOT_THERE)
        _registered.add(session_options)


def _register_op(options: "ort.SessionOptions") -> None:
    try:
        options.register_custom_ops_library(library_path())
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        raise OptionError(f"onnxruntime cannot load the library of onnxruntime-extensions: {one_line(error)}") from error


def _knows_operator(options: "ort.SessionOptions", probe: bytes) -> bool:
    """Return True if onnxruntime, with these options, knows the operator in the model ``probe``.

    Raise OptionError if the model does not load for another reason. The session is never initialised, because unrelated options may
    make the initialisation fail. While this function runs, it disables profiling in ``options`` and sets the model format to ONNX.
    """
    from onnxruntime.capi import _pybind_state as native

    profiles, form = options.enable_profiling, entry_of(options, _FORMAT)
    try:
        if profiles:
            options.enable_profiling = False
        if form == "ORT":
            options.add_session_config_entry(_FORMAT, "ONNX")
        native.InferenceSession(options, probe, False, False)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime", "ortscan"):
            raise
        message = str(error)
        if _ABSENT in message:
            return False
        if _TWICE in message:
            raise OptionError(_WRONG_TWICE) from None
        raise OptionError(f"onnxruntime cannot create a session with these SessionOptions: {one_line(message)}") from error
    finally:
        if profiles:
            options.enable_profiling = True
        if form == "ORT":
            options.add_session_config_entry(_FORMAT, form)
    return True


@functools.cache
def _probe_of_op() -> bytes:
    """Return a model with a call of the op."""
    return _probe(OPERATOR, DOMAIN, SLOTS, spec="")


@functools.cache
def _probe_of_library() -> bytes:
    """Return a model with an operator of onnxruntime-extensions."""
    return _probe("StringUpper", "ai.onnx.contrib", ["string"])


def _probe(operator: str, domain: str, types: Sequence[str], **attributes: Any) -> bytes:
    """Return a model with one node, whose inputs and outputs have the element types ``types``."""
    from onnx import TensorProto, helper

    codes = [TensorProto.DataType.Value(name.upper()) for name in types]
    inputs = [helper.make_tensor_value_info(f"in_{i}", code, [None]) for i, code in enumerate(codes)]
    outputs = [helper.make_tensor_value_info(f"out_{i}", code, None) for i, code in enumerate(codes)]
    node = helper.make_node(operator, [x.name for x in inputs], [y.name for y in outputs], domain=domain, **attributes)
    graph = helper.make_graph([node], "probe", inputs, outputs)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(domain, 1)]
    return bytes(helper.make_model(graph, ir_version=8, opset_imports=opsets).SerializeToString())
