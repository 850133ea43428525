"""Check the caller's sizes against the declarations of the model.

Sizes are shapes of inputs, such as ``{"x": [64, 1, 128]}``, or sizes of named dimensions, such as ``{"T": 64}``. A dimension
without a name is called by its position, such as ``x[1]``.
"""

import itertools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ortscan.running.specs import SessionSpec
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, quoted, shown

__all__ = ["given_dims", "given_shapes", "shapes_with_dims", "with_arrays", "with_shapes"]

_Shape = Sequence[int | None]
_MOST_SHAPES, _MOST_AXES = 100_000, 1000
_MOST_BITS = 1000
_LARGEST = 2**63 - 1


def given_shapes(shapes: Any, option: str = "shapes") -> dict[str, _Shape]:
    """Return ``shapes`` as a dict from input names to lists of sizes. None becomes an empty dict.

    This function does not check that the model has these inputs. ``option`` is the name of the option in errors.

    Raises:
        OptionError: ``shapes`` does not map input names to lists of sizes.
    """
    if shapes is None:
        return {}
    if not isinstance(shapes, Mapping):
        raise OptionError(f"{option} must be a dict such as {{'x': [64, 1, 128]}}, not {type(shapes).__name__}.")
    checked: dict[str, _Shape] = {name: _sizes(name, dims, option) for name, dims in itertools.islice(shapes.items(), _MOST_SHAPES)}
    if len(checked) == _MOST_SHAPES:
        raise OptionError(f"{option} has {_MOST_SHAPES} shapes or more.")
    return checked


def _sizes(name: Any, dims: Any, option: str) -> list[int | None]:
    try:
        dims = dims if isinstance(dims, str | bytes | Mapping) else list(itertools.islice(dims, _MOST_AXES))
        if not isinstance(dims, list) or len(dims) == _MOST_AXES or any(isinstance(size, bool) for size in dims):
            raise TypeError
        sizes = [None if size is None else operator.index(size) for size in dims]
        if any(size is not None and size.bit_length() > _MOST_BITS for size in sizes):
            raise TypeError
        return sizes
    except TypeError:
        raise OptionError(f"{option}: the shape of '{name}' must be a list of whole numbers, not {shown(dims)}.") from None


def given_dims(dims: Any, option: str = "dims") -> dict[str, int]:
    """Return ``dims`` as a dict from names of dimensions to sizes. None becomes an empty dict.

    This function does not check that the model has these dimensions. ``option`` is the name of the option in errors.

    Raises:
        OptionError: ``dims`` does not map names of dimensions to sizes.
    """
    if dims is None:
        return {}
    if not isinstance(dims, Mapping) or len(dims) > _MOST_SHAPES or not all(isinstance(name, str) for name in dims):
        raise OptionError(f"{option} must be a dict such as {{'T': 64}}, not {shown(dims)}.")
    return {name: _size(name, size, option) for name, size in dims.items()}


def _size(name: str, size: Any, option: str) -> int:
    try:
        number = -1 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        number = -1
    if not 0 <= number <= _LARGEST:
        raise OptionError(f"{option}: the size of {quoted(name)} must be a number from 0 to 2^63 - 1, not {shown(size)}.")
    return number


def shapes_with_dims(
    specs: Sequence[SessionSpec], shapes: Mapping[str, _Shape], dims: Mapping[str, int], option: str = "dims"
) -> dict[str, _Shape]:
    """Return ``shapes``, the shapes of inputs, completed by the sizes of free dimensions in ``dims``.

    ``specs`` has the declarations of the inputs. ``option`` is the name by which errors call ``dims``.

    Raises:
        OptionError: a name in ``dims`` is no free dimension of an input, or ``shapes`` has another size for this dimension.
    """
    named = {dim: None for spec in specs for dim in spec.dims or () if isinstance(dim, str)}
    for name in dims:
        if name not in named:
            known = f"the free dimensions are {', '.join(map(quoted, named))}" if named else "there are none"
            raise OptionError(f"{option}: no input has a free dimension {quoted(name)}; {known}{did_you_mean(name, named)}.")
    merged = dict(shapes)
    for spec in specs:
        own = [dims.get(dim) if isinstance(dim, str) else None for dim in spec.dims or ()]
        if any(size is not None for size in own):
            merged[spec.name] = _merged(spec, own, shapes.get(spec.name, [None] * len(own)), option)
    return merged


def _merged(spec: SessionSpec, own: _Shape, shape: _Shape, option: str) -> _Shape:
    if len(shape) != len(own):
        return shape  # `with_shapes` rejects this shape
    for axis, (size, other) in enumerate(zip(own, shape, strict=True)):
        if size is not None and other is not None and size != other:
            name = quoted((spec.dims or ())[axis])
            raise OptionError(f"{option}: dimension {name} is {size}, but the shape of {quoted(spec.name)} has {other} there.")
    return [other if size is None else size for size, other in zip(own, shape, strict=True)]


def with_shapes(specs: Sequence[SessionSpec], shapes: Mapping[str, _Shape]) -> tuple[list[SessionSpec], dict[str, int]]:
    """Return the declarations of the inputs, and the sizes of their free dimensions in ``shapes``.

    None or -1 in a shape leaves a dimension free. An input without a declared rank is returned with the rank of its shape.

    Raises:
        OptionError: a name is unknown, a rank or a fixed size differs, or a dimension gets two sizes.
    """
    names = [spec.name for spec in specs]
    for name, dims in shapes.items():
        if any(size is not None and size < -1 for size in dims):
            raise OptionError(f"shapes gives {name!r} a negative size: {shown(list(dims))}")
        if name not in names:
            raise OptionError(f"shapes has '{name}', but the model's inputs are {', '.join(map(repr, names)) or 'none'}")
    specs = [_ranked(spec, len(shapes[spec.name])) if spec.name in shapes else spec for spec in specs]
    sizes: dict[str, int] = {}
    for spec in specs:
        own = spec.dims or ()
        shape: Sequence[Any] = shapes.get(spec.name, own)
        if len(shape) != len(own):
            raise OptionError(f"shapes gives '{spec.name}' rank {len(shape)}, but the model declares {len(own)}")
        for dim, size in zip(own, shape, strict=True):
            if size == dim or size in (None, -1):
                continue
            if isinstance(dim, int):
                raise OptionError(f"shapes gives '{spec.name}' the size {size}, but the model declares {dim}")
            if sizes.setdefault(dim, int(size or 0)) != size:
                raise OptionError(
                    f"shapes gives dimension '{dim}' the sizes {sizes[dim]} and {size}; if it names two sizes, pass inputs={{...}}"
                )
    return specs, sizes


def with_arrays(specs: Sequence[SessionSpec], values: Mapping[str, Any]) -> tuple[list[SessionSpec], dict[str, int]]:
    """Return the declarations of the inputs, and the sizes of free dimensions in the caller's arrays.

    An input without a declared rank is returned with the rank of its array. If dimensions with the same name have different sizes,
    the first size counts. This is no error, because onnxruntime does not compare such sizes.
    """
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    specs = [_ranked(spec, arrays[spec.name].ndim) if spec.name in arrays else spec for spec in specs]
    sizes: dict[str, int] = {}
    for spec in specs:
        if spec.name in arrays:
            for dim, size in zip(spec.dims or (), arrays[spec.name].shape, strict=True):
                if isinstance(dim, str):
                    sizes.setdefault(dim, size)
    return specs, sizes


def _ranked(spec: SessionSpec, rank: int) -> SessionSpec:
    return spec if spec.dims is not None else replace(spec, dims=tuple(f"{spec.name}[{axis}]" for axis in range(rank)))
