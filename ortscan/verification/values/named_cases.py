"""Which of the values that the models name an input is fed, in how many cases, and what is said of the others."""

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np
import onnx

from ortscan.ort.element_types import numpy_type
from ortscan.running.budget import Level
from ortscan.running.specs import Spec
from ortscan.verification.values.make_value import WORDS, is_integer
from ortscan.verification.values.named_values import MOST_VALUES, Named
from ortscan.verification.values.roles import Role
from ortscan.verification.values.turning_points import Known

__all__ = ["cases_of_named", "fitting", "unfed"]

_MOST_CASES = {"full": 10, "quick": 2}
_FREE = 3
"""What a free dimension is taken for; where it is larger, more values are fed."""
_LARGEST_DECIDING = 1 << 16
"""What may come to be a size, if it has no role that says more."""
_SHOWN = 3
_LONGEST_WORD = 12
"""Longer ones may take Python forever."""
_OFTEN, _MANY = 5, 131
"""Of so many indices for each place, or in all where the number of places is free, the cases draw most."""


def fitting(spec: Spec, named: Sequence[Known], role: Role | None, sizes: Mapping[str, int], any_size: bool) -> list[Known]:
    """Return those of the values ``named`` that an input can take; where not ``any_size``, they might come to be a size."""
    if spec.elem_type == onnx.TensorProto.STRING:
        return [value for value in named if isinstance(value, str)]
    numbers = [value for value in named if not isinstance(value, str)]
    if is_integer(spec):
        info = np.iinfo(numpy_type(spec.elem_type))
        most = info.max if any_size else _LARGEST_DECIDING
        numbers = [number for number in numbers if max(info.min, -most - 1) <= number <= min(info.max, most)]
    return [number for number in numbers if role is None or role.takes(math.floor(number), sizes)]


def cases_of_named(specs: Sequence[Spec], counts: Sequence[int], level: Level) -> int:
    """Return how many cases hold ``counts`` values of each input, every second element being one."""
    needed = [math.ceil(count / _places(spec)) for spec, count in zip(specs, counts, strict=True)]
    return min(max(needed, default=0), _MOST_CASES[level])


def unfed(specs: Sequence[Spec], named: Named, roles: Mapping[str, Role], large: Set[str]) -> Iterator[str]:
    """Say which of the named values are not fed in a full comparison; ``large`` says which inputs take any integer."""
    for spec in specs:
        role, values = roles.get(spec.name), named.exact.get(spec.name, ())
        if role is not None and role.trips:
            continue
        feedable = fitting(spec, values, None, {}, spec.name in large)
        most = min(MOST_VALUES, _MOST_CASES["full"] * _places(spec)) if _is_fixed(spec) else MOST_VALUES
        unbounded = role is not None and not role.highs
        if values and (unbounded or len(feedable) < len(values) or len(values) > most):
            yield f"all of {_shown(values)}, which the models compare '{spec.name}' with"
        number = min((size + plus + 1 for size, plus in role.highs if isinstance(size, int)), default=0) if role is not None else 0
        if number > (_OFTEN * _places(spec) if _is_fixed(spec) else _MANY):
            yield f"most of the {number} values that '{spec.name}' can have"
    words = [*WORDS, *(value for values in named.exact.values() for value in values if isinstance(value, str))]
    if unmatched := [pattern for pattern in named.patterns if not any(_matches(pattern, word) for word in words)]:
        yield f"strings that match {_shown(unmatched)}"
    if named.elsewhere:
        yield f"inputs for which what is computed just meets {_shown(named.elsewhere)}"


def _matches(pattern: str, word: str) -> bool:
    """Whether Python, which reads patterns much as onnxruntime does, finds a match; not where it cannot read the pattern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return len(word) <= _LONGEST_WORD and re.fullmatch(pattern, word) is not None
        except (re.error, OverflowError, RecursionError):
            return False


def _places(spec: Spec) -> int:
    return max(1, (math.prod(dim if isinstance(dim, int) else _FREE for dim in spec.dims or ()) + 1) // 2)


def _is_fixed(spec: Spec) -> bool:
    return all(isinstance(dim, int) for dim in spec.dims or ())


def _shown(values: Sequence[Known]) -> str:
    few = ", ".join(f"{value:.6g}" if isinstance(value, float) else repr(value) for value in values[:_SHOWN])
    return f"{few} and {len(values) - _SHOWN} more" if len(values) > _SHOWN else few
