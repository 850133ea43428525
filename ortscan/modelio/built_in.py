"""Turn inputs into constants of the model, for the options ``fix_inputs`` and ``freeze``.

    g(x, sr, W = {...})    fix_inputs={"sr": 16000}, freeze=True    ->    g(x) {sr = {16000}, W = {...}}

Ifs, trip counts and shapes that depend on such an input become known. An initializer that is listed as an input is only a
default, which each run may replace, so no rule may rely on its value. ``freeze`` makes such an initializer a constant. The inputs
that became constants are no longer inputs of the result.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from ortscan.modelio.loading import AnyModel, ModelLike, load
from ortscan.ort.element_types import numpy_type
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, quoted, shown
from rewrites.graph.type_names import type_name

__all__ = ["listed_defaults", "with_constant_inputs"]

_MOST_SHOWN = 8


def _check_built_in(fix_inputs: Any, freeze: Any) -> tuple[dict[str, Any], bool | list[str]]:
    """Return ``fix_inputs`` as a dict by name, and ``freeze`` as a bool or a list of names.

    Raise OptionError for other types.
    """
    if fix_inputs is not None and not (isinstance(fix_inputs, Mapping) and all(isinstance(name, str) for name in fix_inputs)):
        raise OptionError(f"fix_inputs must be a dict such as {{'sr': 16000}}, not {shown(fix_inputs)}.")
    values = dict(fix_inputs or {})
    if isinstance(freeze, bool | np.bool_):
        return values, bool(freeze)
    try:
        names = [] if isinstance(freeze, str | bytes | Mapping) else list(freeze)
    except TypeError:
        names = []
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(f"freeze must be True, False or a list of names of initializers, not {shown(freeze)}.")
    return values, names


def with_constant_inputs(model: ModelLike, fix_inputs: Any = None, freeze: Any = False) -> AnyModel:
    """Replace some inputs of ``model`` by constants.

    Return ``model`` itself if the options select no input.

    Args:
        model: the model.
        fix_inputs: arrays or numbers by the names of inputs.
        freeze: True for all initializers that are listed as inputs, or a list of their names.

    Raises:
        OptionError: a name in an option is not the name of an input, or a value does not fit its input.
        OrtscanError: the model cannot be loaded; see ``load``.
    """
    values, wanted = _check_built_in(fix_inputs, freeze)
    if not values and not wanted:
        return model
    loaded = load(model)
    graph = loaded.model.graph
    inputs = {value.name or "": value for value in graph.inputs}
    weights = [value.name or "" for value in listed_defaults(loaded.model)]
    for name in wanted if isinstance(wanted, list) else ():
        if name not in weights and not (name in graph.initializers and loaded.listed is not None):
            raise OptionError(f"freeze: the model lists no initializer '{name}' as an input; it lists {_named(weights)}.")
    frozen = [name for name in weights if name in values or wanted is True or (isinstance(wanted, list) and name in wanted)]
    for name, value in values.items():
        if name not in inputs:
            raise OptionError(f"fix_inputs: the model has no input '{name}'; it has {_named(inputs)}{did_you_mean(name, inputs)}.")
        array = _array(inputs[name], value)
        inputs[name].const_value = ir.serde.deserialize_tensor(onnx.numpy_helper.from_array(array, name))
        loaded.built_in.append(f"built in: '{name}' is {_in_words(array)} and no longer an input")
    if others := [name for name in frozen if name not in values]:
        loaded.built_in.append(f"built in: the defaults of {_named(others)}, which were listed as inputs")
    gone = {*values, *frozen}
    for name in gone:
        graph.inputs.remove(inputs[name])
        if name not in graph.initializers:
            graph.register_initializer(inputs[name])
    loaded.interface = loaded.interface.without(gone)
    return loaded if gone else model


def listed_defaults(model: ir.Model) -> list[ir.Value]:
    """Return the initializers that are also inputs.

    A loaded model of IR version 3 has none, because ``load`` removes its weights from the inputs; see ``listed_weights``.
    """
    return [value for value in model.graph.inputs if value.is_initializer()]


def _array(formal: ir.Value, value: Any) -> np.ndarray:
    """Return ``value`` as an array that fits the input ``formal``.

    Raise OptionError if ``value`` cannot be converted, or has another shape.
    """
    name = formal.name
    if not isinstance(formal.type, ir.TensorType) or formal.dtype is None:
        raise OptionError(f"fix_inputs: input '{name}' is no tensor.")
    array = _converted(value, numpy_type(formal.dtype.value))
    if array is None:
        raise OptionError(f"fix_inputs: '{name}' has the type {type_name(formal.dtype)}, which cannot hold {shown(value)}.")
    declared = array.shape if formal.shape is None else formal.shape.dims
    free = [size if isinstance(size, int) else None for size in declared]
    if array.ndim == 0 and all(size in (None, 1) for size in free):
        array = array.reshape([1] * len(free))
    if len(free) != array.ndim or any(size not in (None, own) for size, own in zip(free, array.shape, strict=True)):
        raise OptionError(f"fix_inputs: '{name}' must have the shape {formal.shape}, but {shown(value)} has {list(array.shape)}.")
    return array


def _converted(value: Any, dtype: np.dtype[Any]) -> np.ndarray | None:
    """Return ``value`` as ``dtype``.

    Return None if the kind of ``value`` does not fit, or if a number would change or become infinite.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind not in {"O": "UO", "b": "b", "i": "iu", "u": "iu"}.get(dtype.kind, "iufV"):
            return None
        with np.errstate(over="ignore"):
            converted = array.astype(dtype)
        if dtype.kind in "biu":
            return converted if np.array_equal(converted, array) else None
        if dtype.kind == "O":
            return converted if all(isinstance(text, str) for text in converted.reshape(-1)) else None
        lost = np.isfinite(array.astype(np.float64)) & ~np.isfinite(converted.astype(np.float64))
    except (TypeError, ValueError, OverflowError):
        return None
    return None if lost.any() else converted


def _in_words(array: np.ndarray) -> str:
    if math.prod(array.shape) == 1:
        return shown(array.reshape(-1).tolist()[0])
    return f"an array of the shape {list(array.shape)}"


def _named(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - _MOST_SHOWN} more" if len(known) > _MOST_SHOWN else ""
    return ", ".join(map(quoted, known[:_MOST_SHOWN])) + more if known else "none"
