"""Run a model on onnxruntime, and report any failure as a line of text."""

import ctypes
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import onnx

from ortscan.native.library import register_library
from ortscan.ort.element_types import numpy_type
from ortscan.ort.model_errors import in_short
from ortscan.ort.oldest import warn_of_old
from rewrites.base.errors import OptionError, is_raised_by
from rewrites.native.operator_names import DOMAIN as NATIVE
from rewrites.python_ops.names import DOMAIN as PYTHON

if TYPE_CHECKING:
    import onnxruntime as ort

    from ortscan.modelio.source import ModelSource

__all__ = [
    "TOO_SLOW",
    "ModelSession",
    "RunOutcome",
    "Runner",
    "SessionModel",
    "check_providers",
    "on_one_thread",
    "register_called",
]

_NO_MEMORY = ("bad_alloc", "Failed to allocate memory", "MemoryError", "BFCArena", "tensor would require more than")
_CANCELED = "ModelLoadCanceled"
TOO_SLOW = "creating its session took longer than {:.2g} s"


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run: its outputs, or the reason why it failed.

    Args:
        values: the outputs in the requested order; None if the run failed.
        error: the reason why the run failed, or None.
        seconds: the duration of the run.
        timed_out: True if the run was stopped, because it exceeded its time limit.
        died: True if the run crashed its process.
        exhausted: True if the run needed more memory than was available.
        steps: the number of steps that a Python loop ran until its stop output ended it; None for other runs.
    """

    values: Sequence[Any] | None
    error: str | None
    seconds: float
    timed_out: bool = False
    died: bool = False
    exhausted: bool = False
    steps: int | None = None


@dataclass(frozen=True)
class SessionModel:
    """The model that a session loads.

    Attributes:
        target: the path or the bytes of the model.
        folder: the folder of external data, or None.
    """

    target: str | bytes
    folder: str | None


class ModelSession(Protocol):
    """The interface that `Runner` and `OwnProcessRunner` have in common."""

    outputs: list[str]

    @property
    def error(self) -> str | None:
        """The reason why there is no session, or None."""

    @property
    def loading_timed_out(self) -> bool:
        """True if creating the session took longer than the time limit."""

    def run(self, feed: Mapping[str, Any], seconds: float | None = None) -> RunOutcome:
        """Run the model once on ``feed``. A run that takes longer than ``seconds`` fails."""


class Runner:
    """A session that runs a model in this process.

    If onnxruntime cannot create the session, ``error`` has its message.

    Args:
        source: the model.
        outputs: the outputs to compute, in order.
        providers: execution providers, which onnxruntime must have.
        configure: a function that is called with the SessionOptions before the session is created.
        optimise: True if onnxruntime may optimise the graph (its default).
        seconds: the time limit for creating the session.
    """

    def __init__(
        self,
        source: "ModelSource | SessionModel",
        outputs: Sequence[str],
        providers: Sequence[Any],
        configure: "Callable[[ort.SessionOptions], object] | None" = None,
        optimise: bool = True,
        seconds: float | None = None,
    ):
        import onnxruntime as ort
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # the original class, even if patched

        warn_of_old()
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.use_deterministic_compute = True
        if source.folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", source.folder)
        if configure is not None:
            configure(options)
        register_called(options, source.target)
        if not optimise:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.outputs = list(outputs)
        self.error: str | None = None
        self.loading_timed_out = False
        timer = None if seconds is None else threading.Timer(seconds, options.set_load_cancellation_flag, (True,))
        try:
            if timer is not None:
                timer.start()
            self._session = InferenceSession(source.target, options, providers=list(providers))
        except Exception as error:
            if not is_raised_by(error, "onnxruntime"):
                raise
            self.loading_timed_out = type(error).__name__ == _CANCELED
            self.error = TOO_SLOW.format(seconds) if self.loading_timed_out else in_short(error)
            return
        finally:
            if timer is not None:
                timer.cancel()
        types = {value.name: value.type for value in (*self._session.get_inputs(), *self._session.get_outputs())}
        self._narrow = any(_is_narrow(declared) for declared in types.values())

    def run(self, feed: Mapping[str, Any], seconds: float | None = None) -> RunOutcome:
        """Run the model once on ``feed``. After ``seconds``, the run is stopped and counts as failed."""
        import onnxruntime as ort

        options = ort.RunOptions()
        options.log_severity_level = 4
        stop = threading.Event()
        timer = None if seconds is None else threading.Timer(seconds, _terminate, (options, stop))
        started = time.perf_counter()
        try:
            if timer is not None:
                timer.start()
            values = self._run_narrow(feed, options) if self._narrow else self._session.run(self.outputs, dict(feed), options)
        except Exception as error:
            if not is_raised_by(error, "onnxruntime", "numpy", "ortscan"):
                raise
            message = f"still running after {seconds:.2g} s" if stop.is_set() else in_short(error)
            exhausted = any(word in message for word in _NO_MEMORY)
            return RunOutcome(None, message, time.perf_counter() - started, stop.is_set(), exhausted=exhausted)
        finally:
            if timer is not None:
                timer.cancel()
        return RunOutcome(values, None, time.perf_counter() - started)

    def _run_narrow(self, feed: Mapping[str, Any], options: "ort.RunOptions") -> list[Any]:
        """Run the session with OrtValues instead of arrays, because numpy lacks types such as bfloat16.

        Models without these types use arrays, because OrtValues in Python can hold neither strings nor sequences.
        """
        results = self._session.run_with_ort_values(self.outputs, {k: _to_ort(v) for k, v in feed.items()}, options)
        return [_from_ort(value) for value in results]


def register_called(options: "ort.SessionOptions", target: str | bytes) -> None:
    """Register ortscan's libraries of custom operators, if a model calls their operators.

    ``target`` is the path or the bytes of the model.
    """
    content = target if isinstance(target, bytes) else Path(target).read_bytes()
    if PYTHON.encode() in content:
        from ortscan.custom_ops.registration import register_python

        register_python(options)
    if NATIVE.encode() in content:
        register_library(options)


def on_one_thread(options: "ort.SessionOptions") -> None:
    """Make the session run on one thread.

    For a small session, starting more threads takes ten times as long as creating the session.
    """
    options.intra_op_num_threads = 1


def check_providers(providers: Sequence[Any]) -> None:
    """Raise OptionError if the installed onnxruntime does not have one of ``providers``."""
    import onnxruntime as ort

    available = ort.get_available_providers()
    for provider in providers:
        name = provider if isinstance(provider, str) else provider[0]
        if name not in available:
            raise OptionError(f"providers has '{name}', but this onnxruntime has only {', '.join(available)}")


def _terminate(options: "ort.RunOptions", stop: threading.Event) -> None:
    stop.set()
    options.terminate = True


def _is_narrow(name: str) -> bool:
    """Return True for bfloat16 and the types of 8-bit floats, which numpy lacks.

    ``name`` is the name of a type in onnxruntime or in numpy.
    """
    return "bfloat16" in name or "float8" in name


def _to_ort(value: Any) -> "ort.OrtValue":
    import onnxruntime as ort

    array = np.ascontiguousarray(value).reshape(np.shape(value))
    if not _is_narrow(array.dtype.name):
        return ort.OrtValue.ortvalue_from_numpy(array)
    elem_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(f"u{array.itemsize}"), elem_type)


def _from_ort(value: "ort.OrtValue") -> Any:
    if value.is_tensor_sequence() or not value.has_value():
        raise OptionError("Python cannot read a sequence if another input or output is bfloat16 or float8")
    dtype = numpy_type(value.element_type())
    if not _is_narrow(dtype.name):
        return value.numpy()
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return np.frombuffer(data, dtype).reshape(value.shape()).copy()
