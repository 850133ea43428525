"""``register``: makes the Python custom op known to session options.

The library of onnxruntime-extensions may be registered once on one SessionOptions; a second time every session of them fails. Which
of them have it is noted here, per object. Whether a caller has registered it can only be found by trying: a tiny model that uses
an operator of the library loads or does not.
"""

import functools
import weakref
from typing import TYPE_CHECKING, Any

from ortscan.custom_ops.need import needed_version
from ortscan.custom_ops.operator import declare, library_path
from ortscan.errors import OptionError, UnsupportedModel
from ortscan.fork_safe import ForkSafeLock
from rewrites.python_ops.names import DOMAIN, OPERATOR, VERSION
from rewrites.python_ops.wire import SLOTS

if TYPE_CHECKING:
    import onnxruntime as ort

    from ortscan.modelio import ModelLike

__all__ = ["register"]

_QUIET = {"enable_profiling": False, "optimized_model_filepath": "", "log_severity_level": 4}
_lock = ForkSafeLock()
_registered: "weakref.WeakSet[ort.SessionOptions]" = weakref.WeakSet()


def register(session_options: "ort.SessionOptions", model: "ModelLike | None" = None) -> "ort.SessionOptions":
    """Make the Python custom op of ortscan known to sessions made with ``session_options``, and give these back.

    May be called any number of times, from any thread, before or after sessions were made. The library of onnxruntime-extensions is
    registered with it, so call this instead of ``register_custom_ops_library`` for that library; where that was called first, it
    must have been after ``ortscan.register`` or ``ortscan.custom_ops`` had declared the op in this process.
    ``model``: a model to be run; UnsupportedModel says so where it needs a newer ortscan.

    Raises OptionError where ``session_options`` are none, onnxruntime-extensions is missing, or was registered too early.
    """
    import onnxruntime as ort

    if not isinstance(session_options, ort.SessionOptions):
        raise OptionError(f"register needs onnxruntime.SessionOptions, not {type(session_options).__name__}.")
    wanted = 0 if model is None else needed_version(model)
    if wanted > VERSION:
        raise UnsupportedModel(f"the model needs version {wanted} of the Python op; this ortscan has version {VERSION}.")
    with _lock:
        if session_options in _registered:
            return session_options
        declare()
        if not _loads(_probe_of_op(), session_options):
            if _loads(_probe_of_library(), session_options):
                raise OptionError(
                    "onnxruntime-extensions was registered on these SessionOptions before ortscan had declared its op; call "
                    "ortscan.register(session_options) instead of register_custom_ops_library."
                )
            session_options.register_custom_ops_library(library_path())
        _registered.add(session_options)
    return session_options


def _loads(model: bytes, options: "ort.SessionOptions") -> bool:
    """Whether a session of ``model`` can be made. What would leave a file or a message behind is switched off meanwhile."""
    from onnxruntime.capi import _pybind_state as native

    before = {name: getattr(options, name) for name in _QUIET}
    for name, value in _QUIET.items():
        setattr(options, name, value)
    try:
        session = native.InferenceSession(options, model, False, False)
        session.initialize_session(["CPUExecutionProvider"], [{}], set())
    except Exception:  # onnxruntime's classes; any reason is as good
        return False
    finally:
        for name, value in before.items():
            setattr(options, name, value)
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
