"""A session to be timed: with nothing around its runs but the call from Python, which every user of Python pays."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ortscan.benchmark.turns import clock_for
from ortscan.ort.onnx_says import in_short
from ortscan.running.runner import register_called
from rewrites.base.errors import UnsupportedModel
from rewrites.base.raised_by import is_raised_by

if TYPE_CHECKING:
    from ortscan.modelio.source import Source

__all__ = ["TimedSession"]


class TimedSession:
    """A session of ``source`` on the CPU with so many threads within an operator, 0 for onnxruntime's own choice.

    ``load_seconds``: how long it took to make, by the clock for so many threads. ``profile``: what its profile's file begins with,
    where there is to be one. Raises UnsupportedModel, which names ``name``, where it cannot be made or run.
    """

    def __init__(self, source: "Source", name: str, threads: int, profile: str | None = None) -> None:
        import onnxruntime as ort
        from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # never the patched one

        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.force_spinning_stop", "1")  # else one's threads take the time of the next
        if source.folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", source.folder)
        register_called(options, source.target)
        if profile is not None:
            options.enable_profiling, options.profile_file_prefix = True, profile
        self._name = name
        clock = clock_for(threads).own
        started = clock()
        try:
            self._session = InferenceSession(source.target, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise self._in_words(error, "does not load") from None
        self.load_seconds = clock() - started

    def run(self, feed: Mapping[str, Any]) -> object:
        """Run once; what comes out is dropped."""
        try:
            return self._session.run(None, feed)
        except Exception as error:
            raise self._in_words(error, "does not run") from None

    def end_profiling(self) -> str:
        """Return the path of the profile, which ends here."""
        return str(self._session.end_profiling())

    def _in_words(self, error: Exception, what: str) -> Exception:
        if not is_raised_by(error, "onnxruntime", "numpy"):
            return error
        return UnsupportedModel(f"{self._name} {what} on onnxruntime: {in_short(error)}.")
