"""Run a session of an optimised model.

Two things differ from onnxruntime: callers need not feed inputs with fixed values, and if a Python custom op raises an exception,
the run raises the same exception.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnxruntime as ort

from ortscan.errors import OptionError
from rewrites.base.plain_text import shown

__all__ = ["FixedInputs", "Running"]

_NOTHING = contextlib.nullcontext()


class FixedInputs:
    """The inputs of a session whose values the option ``fix_inputs`` fixes.

    Callers need not feed these inputs. The optimised model no longer has them. If the session runs the original, which still has
    them, this class feeds the fixed values.

    Args:
        values: the fixed values, by the names of the inputs.
        inputs: the inputs of the model that the session runs.
    """

    def __init__(self, values: Mapping[str, Any], inputs: Iterable[ort.NodeArg]) -> None:
        self._values = dict(values)
        self._fed = {node.name: _as_input(values[node.name], node) for node in inputs if node.name in values}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def in_feed(self, feed: Mapping[str, Any], *, as_ort_values: bool = False) -> dict[str, Any]:
        """Return a copy of ``feed``, the caller's inputs, that fits the model that the session runs.

        If the original model runs, the copy has the values of all fixed inputs, as OrtValues if ``as_ort_values`` is True. If the
        optimised model runs, the copy has no fixed inputs. Raise OptionError if ``feed`` has another value for a fixed input.
        """
        for name in self._values.keys() & feed.keys():
            now = np.asarray(feed[name].numpy() if isinstance(feed[name], ort.OrtValue) else feed[name])
            if not np.array_equal(now.reshape(-1), np.asarray(self._values[name]).astype(now.dtype).reshape(-1)):
                raise OptionError(f"fix_inputs: in this session '{name}' is {shown(self._values[name])}, not {shown(now)}.")
        rest = {name: value for name, value in feed.items() if name not in self._values}
        fed = {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in self._fed.items()} if as_ort_values else self._fed
        return {**rest, **fed}


def _as_input(value: Any, node: ort.NodeArg) -> np.ndarray:
    dtypes = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(string)": "object"}
    array = np.asarray(value).astype(dtypes.get(node.type, node.type.removeprefix("tensor(").removesuffix(")")))
    return array.reshape([1] * len(node.shape)) if array.ndim == 0 else array


class Running(ort.InferenceSession):  # type: ignore[misc]
    """onnxruntime's session with two changes.

    Fixed inputs need not be fed, and the exceptions of Python custom ops are raised.
    """

    _ortscan_python_ops = False
    _ortscan_fixed: FixedInputs | None = None

    def get_inputs(self) -> Any:
        """Return the inputs that a caller must feed: all inputs except those with fixed values."""
        inputs = super().get_inputs()
        fixed = self._ortscan_fixed
        return inputs if fixed is None else [node for node in inputs if node.name not in fixed]

    def run(self, output_names: Any, input_feed: Any, *args: Any, **kwargs: Any) -> Any:
        """Do the same as onnxruntime's method.

        Fixed inputs may be missing. If a Python custom op raises an exception, this method raises it too.
        """
        if self._ortscan_fixed is not None:
            input_feed = self._ortscan_fixed.in_feed(input_feed)
        with self._ortscan_run((input_feed, *args), kwargs):
            return super().run(output_names, input_feed, *args, **kwargs)

    def run_with_ort_values(self, output_names: Any, input_dict_ort_values: Any, *args: Any, **kwargs: Any) -> Any:
        """Do the same as onnxruntime's method, with the differences described at ``run``."""
        feed = input_dict_ort_values
        if self._ortscan_fixed is not None:
            feed = self._ortscan_fixed.in_feed(feed, as_ort_values=True)
        with self._ortscan_run((feed, *args), kwargs):
            return super().run_with_ort_values(output_names, feed, *args, **kwargs)

    def run_with_iobinding(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as onnxruntime's method. If a Python custom op raises an exception, raise it too."""
        with self._ortscan_run(args, kwargs):
            return super().run_with_iobinding(*args, **kwargs)

    def run_with_ortvaluevector(self, *args: Any, **kwargs: Any) -> Any:
        """Do the same as onnxruntime's method. If a Python custom op raises an exception, raise it too."""
        with self._ortscan_run(args, kwargs):
            return super().run_with_ortvaluevector(*args, **kwargs)

    def run_async(
        self, output_names: Any, input_feed: Any, callback: Callable[..., Any], user_data: Any, run_options: Any = None
    ) -> Any:
        """Do the same as onnxruntime's method. Fixed inputs may be missing.

        If a Python custom op raises an exception, it is part of the error message that ``callback`` gets.
        """
        if self._ortscan_fixed is not None:
            input_feed = self._ortscan_fixed.in_feed(input_feed)
        if not self._ortscan_python_ops:
            return super().run_async(output_names, input_feed, callback, user_data, run_options)
        from ortscan.custom_ops.runs import explaining_callback

        explained, over = explaining_callback(callback, (input_feed, run_options))
        try:
            return super().run_async(output_names, input_feed, explained, user_data, run_options)
        except BaseException:
            over()
            raise

    def _ortscan_run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> contextlib.AbstractContextManager[None]:
        if not self._ortscan_python_ops:
            return _NOTHING
        from ortscan.custom_ops.runs import run_of_python_ops

        return run_of_python_ops([*args, *kwargs.values()])


for _name in ("run", "run_with_ort_values", "run_with_iobinding", "run_with_ortvaluevector", "run_async"):
    getattr(Running, _name).__qualname__ = getattr(ort.InferenceSession, _name).__qualname__  # the name in a TypeError
