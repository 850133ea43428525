"""``InferenceSession``, a subclass of onnxruntime's class that optimises its model.

``import ortscan`` does not import this module, because it imports onnxruntime.
"""

import functools
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import onnxruntime as ort

from ortscan.base.forks import not_while_forking
from ortscan.errors import OptionError, OrtscanError, OrtscanWarning
from ortscan.native.library import library_path, register_library
from ortscan.ort.sessions import entry_of
from ortscan.session.applied import Applied, Prepared, in_words
from ortscan.session.opening import FOLDER_ENTRY, model_to_open
from ortscan.session.preparing import as_path_or_bytes, creates_own_sessions, forget, own_sessions, prepare
from ortscan.session.provider_target import target_of
from ortscan.session.running import FixedInputs, Running
from ortscan.session.settings import Settings, pop_options, read_settings, warn_of_mistyped
from ortscan.session.source import SessionSource
from ortscan.session.weights_in_options import check_weights, hold_weights
from rewrites.base.errors import is_from_elsewhere, is_raised_by

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

__all__ = ["InferenceSession"]

_log = logging.getLogger("ortscan.session")

_UNKNOWN_PROVIDER = "Unknown Provider Type"
_SWITCHED_OFF = "the SessionOptions disable all optimisation (ORT_DISABLE_ALL); set ortscan.enable to 1 to optimise all the same"
_DISABLED = ort.GraphOptimizationLevel.ORT_DISABLE_ALL


class InferenceSession(Running):
    """An ``onnxruntime.InferenceSession`` that first takes the loops out of its model.

        session = ortscan.InferenceSession("model.onnx")
        session.run(None, feed)

    It accepts the arguments of onnxruntime's class. The model may also be an ``onnx.ModelProto`` or ``onnx_ir.Model``. Options are
    keywords, such as ``target="cuda"``, or entries of the SessionOptions, such as ``ortscan.target``, which take precedence; see
    ``docs/reference/session-entries.md``. By default, the model is optimised for the first execution provider.

    If ortscan cannot optimise the model, it issues an OrtscanWarning, and the session runs the original. If ``ortscan.strict`` is
    1, it raises an OrtscanError instead. If the SessionOptions disable graph optimisation (``ORT_DISABLE_ALL``), ortscan only
    optimises the model if ``ortscan.enable`` is 1. If a Python custom op raises an exception, ``run`` raises this exception.

    Attributes:
        ortscan: what ortscan did. For example, ``session.ortscan.report`` describes each loop.

    Raises:
        OptionError: the value of an option cannot be read.
        Exception: an error of onnxruntime's class.
    """

    ortscan: Applied
    _model_path: str | None
    _model_bytes: bytes | None
    _sess_options: "ort.SessionOptions | None"
    _ortscan_defaults: Mapping[str, str] = {}

    def __init__(
        self,
        path_or_bytes: "str | bytes | os.PathLike[str] | onnx.ModelProto | ir.Model",
        sess_options: "ort.SessionOptions | None" = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[Any, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        self.ortscan = Applied("original")
        self._ortscan_defaults = {**self._ortscan_defaults, **pop_options(kwargs)}
        model, self._ortscan_holder = as_path_or_bytes(path_or_bytes)
        super().__init__(model, sess_options, providers, provider_options, **kwargs)

    def _create_inference_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
        """Create the underlying session.

        onnxruntime's class calls this method in its constructor and in ``set_providers``.
        """
        arguments = (providers, provider_options, disabled_optimizers)
        if creates_own_sessions():
            super()._create_inference_session(*arguments)
            return
        if not isinstance(self._sess_options, ort.SessionOptions | None):
            self.ortscan = Applied("original", f"sess_options is {type(self._sess_options).__name__}, not SessionOptions")
            with own_sessions():
                super()._create_inference_session(*arguments)
            return
        settings = self._ortscan_settings()
        problem: Exception | None = None
        try:
            problem = self._ortscan_open_optimised(settings, arguments)
            if problem is None:
                self._ortscan_fix(settings)
                return
            if settings.strict and isinstance(problem, OrtscanError):
                raise problem
            if settings.strict:
                self._ortscan_refuse(problem, arguments)
            self._ortscan_open_original(problem, arguments)
            self._ortscan_fix(settings)
        finally:
            del problem  # its traceback refers to this frame, which would keep the model in memory

    def _ortscan_open_optimised(self, settings: Settings, arguments: tuple[Any, ...]) -> Exception | None:
        """Optimise the model and open the result. Return None, or the error if the optimisation failed.

        Raise an error that has another cause than the optimisation.
        """
        options = self._sess_options
        ask = None if options is None else functools.partial(hold_weights, options)
        source = SessionSource(self._model_path, self._model_bytes, entry_of(options, FOLDER_ENTRY), ask)
        target = target_of(arguments[0], ort.get_available_providers(), options is not None and options.has_providers())
        problem = self._ortscan_open_for(target, source, settings, arguments)
        try:
            if problem is None and arguments[0] and "target" not in settings.options and self.ortscan.source != "original":
                loaded_target = target_of(self.get_providers(), self.get_providers())  # only providers that could be loaded
                if loaded_target != target:
                    self._sess_options = options
                    problem = self._ortscan_open_for(loaded_target, source, settings, arguments)
            _log.info(
                "%s in %.3f s%s", self.ortscan.source, self.ortscan.seconds, f": {self.ortscan.why}" if self.ortscan.why else ""
            )
            if self.ortscan.source != "cached":
                warn_of_mistyped(options, once=self.ortscan.source != "optimized")
            return problem
        finally:
            del problem

    def _ortscan_open_for(
        self, target: str, source: SessionSource, settings: Settings, arguments: tuple[Any, ...]
    ) -> Exception | None:
        options = self._sess_options
        problem: Exception | None = None
        try:
            for look_up in (True, False):
                try:
                    prepared = prepare(source, settings, target, look_up)
                    if options is not None and not prepared.is_original:
                        check_weights(options, source)
                except OptionError:
                    raise
                except Exception as error:  # if the optimisation fails, the original model must still run
                    if is_from_elsewhere(error):
                        raise
                    return error
                try:
                    self._ortscan_open(prepared, arguments)
                    return None
                except Exception as error:
                    if _is_not_of_the_model(error) or prepared.is_original:
                        raise
                    problem = error
                if prepared.applied.source != "cached":
                    break
                forget(prepared)
                self._sess_options = options
            return problem
        finally:
            del problem

    def _ortscan_settings(self) -> Settings:
        settings = read_settings(self._sess_options, self._ortscan_defaults)
        off = self._sess_options is not None and self._sess_options.graph_optimization_level == _DISABLED
        if settings.enable is None and off:
            return Settings(enable=False, why_not=_SWITCHED_OFF)
        # onnxruntime does not save functions of a model, and a saved model must run without ortscan's library
        is_saved = self._sess_options is not None and bool(self._sess_options.optimized_model_filepath)
        return replace(settings, plans=library_path() is not None and not is_saved)

    def _ortscan_open(self, prepared: Prepared, arguments: tuple[Any, ...]) -> None:
        before = self._model_path, self._model_bytes, self._sess_options
        is_ours = self._sess_options is None
        if is_ours and (prepared.data_of is not None or prepared.python_ops or library_path() is not None):
            self._sess_options = _shared_options() if prepared.data_of is None else ort.SessionOptions()
        try:
            if prepared.python_ops:
                from ortscan.custom_ops.registration import register_python

                with not_while_forking():
                    register_python(self._sess_options)
            register_library(self._sess_options)
            with own_sessions(), not_while_forking(), model_to_open(prepared, self._sess_options, is_ours) as (path, content):
                if not prepared.is_original:
                    self._model_path, self._model_bytes = path, content
                super()._create_inference_session(*arguments)
        except BaseException:
            self._sess_options = before[2]
            raise
        finally:
            self._model_path, self._model_bytes = before[:2]
        self.ortscan = prepared.applied
        self._ortscan_python_ops = prepared.python_ops

    def _ortscan_refuse(self, problem: Exception, arguments: tuple[Any, ...]) -> NoReturn:
        """Raise an OrtscanError that says why the model could not be optimised. ``problem`` is the reason.

        On errors of other types, onnxruntime's constructor would retry with other providers. If ``problem`` is an OSError, first
        open the original with onnxruntime. If this fails too, raise onnxruntime's error instead.
        """
        if isinstance(problem, OSError):
            with own_sessions():
                super()._create_inference_session(*arguments)
        raise OrtscanError(f"{self._ortscan_name()} could not be optimised: {in_words(problem)}") from problem

    def _ortscan_name(self) -> str:
        return self._model_path or "the given model"

    def _ortscan_open_original(self, problem: Exception | None, arguments: tuple[Any, ...]) -> None:
        try:
            with own_sessions():
                super()._create_inference_session(*arguments)
        except Exception as error:
            raise error from problem
        why = f"ortscan could not optimise it: {in_words(problem)}"
        self.ortscan = Applied("original", why)
        warnings.warn(f"{self._ortscan_name()} runs unchanged, because {why}", OrtscanWarning, stacklevel=5)

    def _ortscan_fix(self, settings: Settings) -> None:
        values = settings.options.get("fix_inputs")
        self._ortscan_fixed = FixedInputs(values, super(Running, self).get_inputs()) if values else None


@functools.cache
def _shared_options() -> "ort.SessionOptions":
    """Return the SessionOptions for all sessions that were created without SessionOptions.

    They share one object, because the library of the Python custom op leaks about 1 KB for each SessionOptions object.
    """
    return ort.SessionOptions()


def _is_not_of_the_model(error: Exception) -> bool:
    """Return True if ``error`` would also occur with any other model.

    This is the case if other code than ortscan and onnxruntime raised ``error``, or if ``error`` is about another argument.
    """
    if is_from_elsewhere(error) or _UNKNOWN_PROVIDER in str(error):
        return True
    return type(error) in (TypeError, ValueError) and is_raised_by(error, "onnxruntime")
