"""``register``: makes the Python custom op known to session options.

The library of onnxruntime-extensions may be registered once on one SessionOptions; a second time every session of them fails. Which
of them have it is noted here, per object. Whether a caller has registered it can only be found by trying: onnxruntime reads a tiny
model that uses an operator of the library, or says that there is no such operator. Entries of the options are no place for a note:
onnxruntime copies them to where the library is not.

Declares the one Python op to onnxruntime-extensions, once in a process and before any session can have it.

Which version of the Python custom op a model needs.
"""

import functools
import importlib
import importlib.util
import json
import weakref
from typing import TYPE_CHECKING, Any

from ortscan.base.forks import ForkSafeLock
from ortscan.custom_ops.calls import run_call
from ortscan.custom_ops.ending import watch
from ortscan.custom_ops.failures import shielded
from ortscan.custom_ops.slots import Carried, takes_carried
from ortscan.edge.border import one_sentence
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
    "onnxruntime-extensions was registered twice on these SessionOptions, and onnxruntime makes no session with them; call "
    "ortscan.register on new ones, and register_custom_ops_library for that library no more."
)
_NOT_THERE = "onnxruntime-extensions was registered on these SessionOptions, but onnxruntime does not find ortscan's op in it."
_declaring = ForkSafeLock()
_lock = ForkSafeLock()
_registered: "weakref.WeakSet[ort.SessionOptions]" = weakref.WeakSet()


def library_path() -> str:
    """Return the path of the library that session options register. Raises OptionError where the package is missing."""
    return str(_extensions().get_library_path())


def declare() -> None:
    """Declare the op; after the first time nothing happens."""
    with _declaring:
        _declare_once()


@functools.cache
def _declare_once() -> Any:
    library = _extensions()
    watch()
    types = [getattr(library.PyCustomOpDef, f"dt_{slot}") for slot in SLOTS]
    text = library.PyCustomOpDef.dt_string
    declared = library.onnx_op(op_type=f"{DOMAIN}::{OPERATOR}", inputs=types, outputs=types, attrs={"spec": text})(_call)
    _Answers.carried = takes_carried(declared)
    return declared


class _Answers:
    """Whether the library was seen to take results as ``Carried``; plain arrays are taken by every version."""

    carried = False


def _call(*slots: Any, spec: str = "") -> tuple[Any, ...]:
    results = shielded(run_call, spec, slots)
    return tuple([Carried(array) for array in results]) if _Answers.carried else tuple(results)


def has_extensions() -> bool:
    """Whether the package is installed that runs Python within onnxruntime."""
    return importlib.util.find_spec("onnxruntime_extensions") is not None


def _extensions() -> Any:
    try:
        return importlib.import_module("onnxruntime_extensions")
    except ImportError as error:
        raise OptionError(
            f"Python custom ops need onnxruntime-extensions (ortscan[custom-ops] has it), which cannot be imported: {error}."
        ) from None


def needed_version(model: "ModelLike") -> int:
    """Return the version of the op that the metadata of ``model`` names; 0 where it names none. Raises as ``load`` does."""
    from ortscan.modelio import load

    said = load(model).model.metadata_props.get(METADATA)
    try:
        version = json.loads(said)["version"] if said else 0
    except (ValueError, LookupError, TypeError, RecursionError):
        return 0
    return version if isinstance(version, int) else 0


@one_sentence
def register(session_options: "ort.SessionOptions", model: "ModelLike | None" = None) -> "ort.SessionOptions":
    """Make the Python custom op of ortscan known to sessions made with ``session_options``, and give these back.

    May be called any number of times, from any thread, before or after sessions were made. The library of onnxruntime-extensions is
    registered with it, so call this instead of ``register_custom_ops_library`` for that library; where that was called first, it
    must have been after this function, or a session that calls Python, had declared the op in this process.
    ``model``: a model to be run; UnsupportedModel says so where it needs a newer ortscan. Without onnxruntime-extensions only loops
    are run compiled, and a model that calls Python is refused.

    Raises OptionError where ``session_options`` are none, onnxruntime-extensions is missing for ``model``, or was registered too
    early or twice, or where the options are such that onnxruntime makes no session with them.
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
    """Make the Python custom op known to sessions made with ``session_options``; raises OptionError as ``register`` does."""
    with _lock:
        if session_options in _registered:
            return
        declare()
        found = _knows(session_options, _probe_of_library())
        if not found:
            _put_on(session_options)
        if not _knows(session_options, _probe_of_op()):
            raise OptionError(_TOO_EARLY if found else _NOT_THERE)
        _registered.add(session_options)


def _put_on(options: "ort.SessionOptions") -> None:
    try:
        options.register_custom_ops_library(library_path())
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        raise OptionError(f"onnxruntime cannot load the library of onnxruntime-extensions: {one_line(error)}") from error


def _knows(options: "ort.SessionOptions", probe: bytes) -> bool:
    """Whether onnxruntime, with these options, knows the operator of a tiny model. Raises OptionError where that cannot be told.

    The model is read but no session is finished, since many options make that fail which say nothing about the library. Options are
    changed for a moment only where they ask for a file, or for another format of models.
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
        said = str(error)
        if _ABSENT in said:
            return False
        if _TWICE in said:
            raise OptionError(_WRONG_TWICE) from None
        raise OptionError(f"onnxruntime makes no session with these SessionOptions: {one_line(said)}") from error
    finally:
        if profiles:
            options.enable_profiling = True
        if form == "ORT":
            options.add_session_config_entry(_FORMAT, form)
    return True


@functools.cache
def _probe_of_op() -> bytes:
    """A model of one call."""
    import onnx_ir as ir

    inputs = [_value(slot, number) for number, slot in enumerate(SLOTS)]
    node = ir.node(OPERATOR, inputs, {"spec": ""}, domain=DOMAIN, num_outputs=len(SLOTS))
    for slot, value in zip(SLOTS, node.outputs, strict=True):
        value.name, value.type = f"out_{slot}", ir.TensorType(ir.DataType[slot.upper()])
    return _model(inputs, node, {DOMAIN: 1})


@functools.cache
def _probe_of_library() -> bytes:
    """A model of one operator that the library brings."""
    import onnx_ir as ir

    x = _value("string", 0)
    node = ir.node("StringUpper", [x], domain="ai.onnx.contrib", num_outputs=1)
    node.outputs[0].name, node.outputs[0].type = "out", x.type
    return _model([x], node, {"ai.onnx.contrib": 1})


def _value(kind: str, number: int) -> Any:
    import onnx_ir as ir

    return ir.Value(name=f"in_{number}", type=ir.TensorType(ir.DataType[kind.upper()]), shape=ir.Shape([None]))


def _model(inputs: Any, node: Any, opsets: dict[str, int]) -> bytes:
    import onnx_ir as ir

    graph = ir.Graph(inputs, node.outputs, nodes=[node], name="probe", opset_imports={"": 18, **opsets})
    return bytes(ir.to_proto(ir.Model(graph, ir_version=8)).SerializeToString())
