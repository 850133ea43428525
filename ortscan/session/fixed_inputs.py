"""Inputs that always have one value: a caller of a session may give them or not, whether the model inside takes them or not."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ortscan.errors import OptionError
from rewrites.base.plain_text import shown

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["FixedInputs"]


class FixedInputs:
    """What the option ``fix_inputs`` of a session says, ``values`` by names, for a model that takes ``inputs``.

    The optimised model does not take them any more. The original does, where it runs in its place.
    """

    def __init__(self, values: Mapping[str, Any], inputs: "Iterable[ort.NodeArg]") -> None:
        self._values = dict(values)
        self._fed = {node.name: _as_taken(values[node.name], node) for node in inputs if node.name in values}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def in_feed(self, feed: Mapping[str, Any], *, as_ort_values: bool = False) -> dict[str, Any]:
        """Return ``feed`` as the model takes it. Raises OptionError where it has another value than the one that is built in."""
        import onnxruntime as ort

        for name in self._values.keys() & feed.keys():
            now = np.asarray(feed[name].numpy() if isinstance(feed[name], ort.OrtValue) else feed[name])
            if not np.array_equal(now.reshape(-1), np.asarray(self._values[name]).astype(now.dtype).reshape(-1)):
                raise OptionError(f"fix_inputs: in this session '{name}' is {shown(self._values[name])}, not {shown(now)}.")
        rest = {name: value for name, value in feed.items() if name not in self._values}
        fed = {name: ort.OrtValue.ortvalue_from_numpy(value) for name, value in self._fed.items()} if as_ort_values else self._fed
        return {**rest, **fed}


def _as_taken(value: Any, node: "ort.NodeArg") -> np.ndarray:
    named = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(string)": "object"}
    array = np.asarray(value).astype(named.get(node.type, node.type.removeprefix("tensor(").removesuffix(")")))
    return array.reshape([1] * len(node.shape)) if array.ndim == 0 else array
