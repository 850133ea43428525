"""Runs of a session: with the values of fixed inputs, and with what is raised inside Python custom ops coming out."""

import contextlib
from collections.abc import Callable
from typing import Any

import onnxruntime as ort

from ortscan.session.fixed_inputs import FixedInputs

__all__ = ["Running"]

_NOTHING = contextlib.nullcontext()


class Running(ort.InferenceSession):  # type: ignore[misc]
    """onnxruntime's session, run as the model in it needs."""

    _ortscan_python_ops = False
    _ortscan_fixed: FixedInputs | None = None

    def get_inputs(self) -> Any:
        """Return the inputs as onnxruntime's class does, without those that the option ``fix_inputs`` says."""
        inputs = super().get_inputs()
        fixed = self._ortscan_fixed
        return inputs if fixed is None else [node for node in inputs if node.name not in fixed]

    def run(self, output_names: Any, input_feed: Any, *args: Any, **kwargs: Any) -> Any:
        """Run as onnxruntime's class does; what was raised inside a Python custom op is raised here."""
        if self._ortscan_fixed is not None:
            input_feed = self._ortscan_fixed.in_feed(input_feed)
        with self._ortscan_run((input_feed, *args), kwargs):
            return super().run(output_names, input_feed, *args, **kwargs)

    def run_with_ort_values(self, output_names: Any, input_dict_ort_values: Any, *args: Any, **kwargs: Any) -> Any:
        """Run as onnxruntime's class does; see ``run``."""
        feed = input_dict_ort_values
        if self._ortscan_fixed is not None:
            feed = self._ortscan_fixed.in_feed(feed, as_ort_values=True)
        with self._ortscan_run((feed, *args), kwargs):
            return super().run_with_ort_values(output_names, feed, *args, **kwargs)

    def run_with_iobinding(self, *args: Any, **kwargs: Any) -> Any:
        """Run as onnxruntime's class does; see ``run``."""
        with self._ortscan_run(args, kwargs):
            return super().run_with_iobinding(*args, **kwargs)

    def run_with_ortvaluevector(self, *args: Any, **kwargs: Any) -> Any:
        """Run as onnxruntime's class does; see ``run``."""
        with self._ortscan_run(args, kwargs):
            return super().run_with_ortvaluevector(*args, **kwargs)

    def run_async(
        self, output_names: Any, input_feed: Any, callback: Callable[..., Any], user_data: Any, run_options: Any = None
    ) -> Any:
        """Run as onnxruntime's class does; the message the callback gets says what was raised inside a Python custom op."""
        if self._ortscan_fixed is not None:
            input_feed = self._ortscan_fixed.in_feed(input_feed)
        if not self._ortscan_python_ops:
            return super().run_async(output_names, input_feed, callback, user_data, run_options)
        from ortscan.custom_ops.runs import explaining

        told, over = explaining(callback, (input_feed, run_options))
        try:
            return super().run_async(output_names, input_feed, told, user_data, run_options)
        except BaseException:
            over()
            raise

    def _ortscan_run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
        if not self._ortscan_python_ops:
            return _NOTHING
        from ortscan.custom_ops.runs import run_of_python_ops

        return run_of_python_ops([*args, *kwargs.values()])


for _name in ("run", "run_with_ort_values", "run_with_iobinding", "run_with_ortvaluevector", "run_async"):
    getattr(Running, _name).__qualname__ = getattr(ort.InferenceSession, _name).__qualname__  # what a TypeError names
