"""Sizes of dimensions by their names, such as ``{"T": 64}``: the same as shapes of the inputs that have them.

One without a name is called by its place, ``x[1]``, as in what verifications and benchmarks say.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from ortscan.running.specs import Spec
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, quoted, shown

__all__ = ["given_dims", "shapes_with_dims"]

_MOST = 100_000
_LARGEST = 2**63 - 1


def given_dims(dims: Any, option: str = "dims") -> dict[str, int]:
    """Return ``dims`` as a dict, {} for None. ``option``: their name.

    Raises:
        OptionError: it is no dict of the name of a dimension to a size.
    """
    if dims is None:
        return {}
    if not isinstance(dims, Mapping) or len(dims) > _MOST or not all(isinstance(name, str) for name in dims):
        raise OptionError(f"{option} must be a dict such as {{'T': 64}}, not {shown(dims)}.")
    return {name: _size(name, size, option) for name, size in dims.items()}


def _size(name: str, size: Any, option: str) -> int:
    try:
        found = -1 if isinstance(size, bool) else operator.index(size)
    except TypeError:
        found = -1
    if not 0 <= found <= _LARGEST:
        raise OptionError(f"{option}: the size of {quoted(name)} must be a number from 0 to 2^63 - 1, not {shown(size)}.")
    return found


def shapes_with_dims(
    specs: Sequence[Spec], shapes: Mapping[str, Sequence[int | None]], dims: Mapping[str, int], option: str = "dims"
) -> dict[str, Sequence[int | None]]:
    """Return ``shapes`` of inputs with the sizes that ``dims`` has for free dimensions.

    Raises:
        OptionError: no input has such a free dimension, or a shape gives it another size.
    """
    named = {dim: None for spec in specs for dim in spec.dims or () if isinstance(dim, str)}
    for name in dims:
        if name not in named:
            known = f"free are {', '.join(map(quoted, named))}" if named else "none is free"
            raise OptionError(f"{option}: no input has a free dimension {quoted(name)}; {known}{did_you_mean(name, named)}.")
    found = dict(shapes)
    for spec in specs:
        own = [dims.get(dim) if isinstance(dim, str) else None for dim in spec.dims or ()]
        if any(size is not None for size in own):
            found[spec.name] = _merged(spec, own, shapes.get(spec.name), option)
    return found


def _merged(spec: Spec, own: Sequence[int | None], given: Sequence[int | None] | None, option: str) -> Sequence[int | None]:
    if given is None:
        return own
    if len(given) != len(own):
        return given  # which is refused where shapes are read
    for axis, (size, other) in enumerate(zip(own, given, strict=True)):
        if size is not None and other is not None and size != other:
            name = quoted((spec.dims or ())[axis])
            raise OptionError(f"{option}: dimension {name} is {size}, and the shape of {quoted(spec.name)} has {other} for it.")
    return [other if size is None else size for size, other in zip(own, given, strict=True)]
