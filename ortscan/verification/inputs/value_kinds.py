"""Choose the kinds of unusual values to try, and for each kind the inputs and the number of cases.

In this module, ``missing`` has the inputs whose values are generated. ``roles`` has the `Role` of each input whose possible values
are known.
"""

import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np
import onnx

from ortscan.ort.element_types import numpy_type
from ortscan.running.budget import Level
from ortscan.running.specs import SessionSpec
from ortscan.verification.inputs.integers import ROW_KINDS, allows_lengths_of_kind
from ortscan.verification.inputs.make_value import FLOAT_KINDS, FLOATS, WORDS, is_integer
from ortscan.verification.inputs.named_values import MOST_VALUES, NamedValues
from ortscan.verification.inputs.roles import Role
from ortscan.verification.inputs.turning_points import Known

__all__ = [
    "MOST_ALONE",
    "can_be_zero",
    "cases_of_named",
    "fitting",
    "other_defaults",
    "other_integers",
    "steady_kinds",
    "useless_kinds",
    "value_kinds",
    "values_not_fed",
]

MOST_ALONE = 8
"""The most inputs that get separate cases."""

_FAR, _LEAST_FAR, _LARGEST = 100.0, 1.0, 1e4
_MOST_SPREAD = 1e300
_FOR_ALL = frozenset(["large", "mixed", "zeros"])
_MOST_CASES = {"full": 10, "quick": 2}
_FREE = 3
"""The assumed size of a free dimension. If the actual size is larger, more values are fed."""
_LARGEST_DECIDING = 1 << 16
"""The largest integer to feed to an input that may determine a size and has no role with limits."""
_SHOWN = 3
_LONGEST_WORD = 12
"""The longest word to match with a pattern, because Python may take forever on longer words."""
_OFTEN, _MANY = 5, 131
"""The cases draw most of the possible indices if there are at most this many: for each element, or in total if the number of
elements is free.
"""


def other_integers(missing: Sequence[SessionSpec], roles: Mapping[str, Role]) -> list[str]:
    """Return the inputs in ``missing`` that can have unusual integers as values, such as negative indices."""
    return [spec.name for spec in missing if roles.get(spec.name, Role()).ranges]


def value_kinds(
    missing: Sequence[SessionSpec], roles: Mapping[str, Role], large: Set[str], avoid_empty: bool, level: Level
) -> Iterator[tuple[str, str, int]]:
    """Yield tuples (kind, input, count): in ``count`` cases, ``input`` has values of this ``kind``.

    If ``input`` is empty, all inputs have values of this kind. The kind ``alone`` is an exception: ``input`` has usual values, and
    all other optional inputs are absent.

    Args:
        missing: the inputs whose values are generated.
        roles: the role of each input whose possible values are known.
        large: the integer inputs that may have very large values.
        avoid_empty: True if no input may be empty.
        level: how thorough the comparison is.
    """
    full = level == "full"
    others = [name for name in other_integers(missing, roles) if not (avoid_empty and roles[name].is_strict)]
    if others and (full or len(others) > 1):
        yield "other integers", "", 4 if full else 1
    for name in others[: MOST_ALONE if full else len(others) == 1]:
        yield "other integers", name, 4 if full else 2
    if large:
        yield "large integers", "", 6 if full else 1
    sequences = [spec for spec in missing if spec.kind == "sequence"]
    if sequences and not avoid_empty:
        yield "no items", "", 1
    for kind in ("ragged", "many items") if sequences and full else ():
        yield kind, "", 1
    optionals = [spec.name for spec in missing if spec.optional]
    if optionals:
        yield "absent", "", 1
    for name in optionals[:MOST_ALONE] if full and len(optionals) > 1 else ():
        yield "absent", name, 1
    for name in optionals[:MOST_ALONE] if full and len(optionals) > 2 else ():
        yield "alone", name, 1
    for name in can_be_zero(missing, roles, avoid_empty)[:MOST_ALONE] if full else ():
        yield "zero", name, 1


def steady_kinds(missing: Sequence[SessionSpec]) -> list[str]:
    """Return the kinds of values, constant along one axis, for which a float input has enough axes.

    Values of the kind "steady" are constant along the first axis. They need at least 2 axes. Values of the kind "steady across" are
    constant along the second axis. They need at least 3 axes. One of these two axes is often the axis of steps. If the values are
    constant along it, a loop adds the same value in each step, and the sum may overflow.
    """
    deepest = max((len(spec.dims or ()) for spec in missing if spec.elem_type in FLOATS), default=0)
    return [kind for kind, rank in (("steady", 2), ("steady across", 3)) if deepest >= rank]


def can_be_zero(missing: Sequence[SessionSpec], roles: Mapping[str, Role], avoid_empty: bool) -> list[str]:
    """Return the inputs in ``missing`` that may be all zeros (or all False).

    The other inputs then have usual values. The result is empty if ``missing`` has only one input. If ``avoid_empty`` is True,
    boolean inputs are not included.
    """
    types = onnx.TensorProto
    left_out = (types.STRING, types.BOOL) if avoid_empty else (types.STRING,)
    names = [spec.name for spec in missing if spec.elem_type not in left_out and not roles.get(spec.name, Role()).is_trip_count]
    return names if len(missing) > 1 else []


def useless_kinds(missing: Sequence[SessionSpec], roles: Mapping[str, Role]) -> set[str]:
    """Return the kinds of values that need not be tried.

    For these kinds, all inputs in ``missing`` would get their usual values.
    """
    kinds = [numpy_type(spec.elem_type).kind for spec in missing if not roles.get(spec.name, Role()).is_strict]
    lengths = any(roles[spec.name].lengths for spec in missing if spec.name in roles)
    useless = set[str]() if set(kinds) & set("fV") else set(FLOAT_KINDS - _FOR_ALL)
    lasting = {kind for kind in ROW_KINDS if any(allows_lengths_of_kind(roles.get(spec.name), kind) for spec in missing)}
    return useless | (set() if lengths else {"empty rows"}) | (set(ROW_KINDS) - lasting)


def other_defaults(defaults: Mapping[str, np.ndarray], by: str, seed: int) -> dict[str, np.ndarray]:
    """Return values to feed instead of the defaults of inputs, by name.

    Args:
        defaults: the defaults, by name.
        by: the kind of other values: ``negated``, ``zeros``, ``far``, or any other word for values near the defaults.
        seed: the seed of random values.
    """
    random = np.random.default_rng([seed, len(defaults)])

    def other(array: np.ndarray) -> np.ndarray:
        wide = array.astype(np.float64)
        finite = np.abs(wide[np.isfinite(wide)])
        spread = min(max(0.3 * float(finite.mean()), 0.1), _MOST_SPREAD) if finite.size else 0.0
        match by:
            case "negated":
                return -wide
            case "zeros":
                return np.zeros(array.shape)
            case "far":
                reach = max(_FAR * spread, _LEAST_FAR)
                moves = random.choice((-1.0, 1.0), array.shape) * random.uniform(reach, 2 * reach, array.shape)
                return np.asarray(np.clip(wide + moves, -_LARGEST, _LARGEST))
        return np.asarray(wide + spread * random.standard_normal(array.shape))

    return {name: np.asarray(other(array)).astype(array.dtype) for name, array in defaults.items()}


def fitting(spec: SessionSpec, named: Sequence[Known], role: Role | None, sizes: Mapping[str, int], any_size: bool) -> list[Known]:
    """Return those of the ``named`` values (see `named_values`) that the input ``spec`` can have.

    Its ``role`` limits the values at ``sizes``; None means no limit. If ``any_size`` is False, large integers are left out, because
    the input may determine a size.
    """
    if spec.elem_type == onnx.TensorProto.STRING:
        return [value for value in named if isinstance(value, str)]
    numbers = [value for value in named if not isinstance(value, str)]
    if is_integer(spec):
        info = np.iinfo(numpy_type(spec.elem_type))
        most = info.max if any_size else _LARGEST_DECIDING
        numbers = [number for number in numbers if max(info.min, -most - 1) <= number <= min(info.max, most)]
    return [number for number in numbers if role is None or role.allows(math.floor(number), sizes)]


def cases_of_named(specs: Sequence[SessionSpec], counts: Sequence[int], level: Level) -> int:
    """Return how many cases are needed to feed all named values, up to a maximum.

    In each case, every second element of an input is one of its named values. ``counts`` has the number of named values of each
    input in ``specs``. The maximum depends on ``level``.
    """
    needed = [math.ceil(count / _capacity(spec)) for spec, count in zip(specs, counts, strict=True)]
    return min(max(needed, default=0), _MOST_CASES[level])


def values_not_fed(specs: Sequence[SessionSpec], named: NamedValues, roles: Mapping[str, Role], large: Set[str]) -> Iterator[str]:
    """Yield phrases on the named values that a full comparison does not feed.

    ``named`` has the named values of each input. ``large`` has the names of the inputs that may be any integer.
    """
    for spec in specs:
        role, values = roles.get(spec.name), named.exact.get(spec.name, ())
        if role is not None and role.is_trip_count:
            continue
        fixed = all(isinstance(dim, int) for dim in spec.dims or ())
        feedable = fitting(spec, values, None, {}, spec.name in large)
        most = min(MOST_VALUES, _MOST_CASES["full"] * _capacity(spec)) if fixed else MOST_VALUES
        unbounded = role is not None and not role.highs
        if values and (unbounded or len(feedable) < len(values) or len(values) > most):
            yield f"all of {_shown(values)}, which the models compare '{spec.name}' with"
        number = min((size + plus + 1 for size, plus in role.highs if isinstance(size, int)), default=0) if role is not None else 0
        if number > (_OFTEN * _capacity(spec) if fixed else _MANY):
            yield f"most of the {number} values that '{spec.name}' can have"
    words = [*WORDS, *(value for values in named.exact.values() for value in values if isinstance(value, str))]
    if unmatched := [pattern for pattern in named.patterns if not any(_matches(pattern, word) for word in words)]:
        yield f"strings that match {_shown(unmatched)}"
    if named.unassigned:
        yield f"inputs for which a computed value equals {_shown(named.unassigned)}"


def _capacity(spec: SessionSpec) -> int:
    """Return how many named values one case can feed to an input: half the number of its elements."""
    return max(1, (math.prod(dim if isinstance(dim, int) else _FREE for dim in spec.dims or ()) + 1) // 2)


def _matches(pattern: str, word: str) -> bool:
    """Return True if the regular expression ``pattern`` matches ``word``.

    The word is matched with Python's ``re``, which has almost the same syntax as onnxruntime. Return False if ``re`` cannot parse
    the pattern.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return len(word) <= _LONGEST_WORD and re.fullmatch(pattern, word) is not None
        except (re.error, OverflowError, RecursionError):
            return False


def _shown(values: Sequence[Known]) -> str:
    few = ", ".join(f"{value:.6g}" if isinstance(value, float) else repr(value) for value in values[:_SHOWN])
    return f"{few} and {len(values) - _SHOWN} more" if len(values) > _SHOWN else few
