"""Which inputs are given values of another kind than the rest, alone or together, and other values for the defaults of inputs."""

from collections.abc import Iterator, Mapping, Sequence, Set

import numpy as np
import onnx

from ortscan.running.budget import Level
from ortscan.running.specs import Spec
from ortscan.verification.values.roles import Role

__all__ = ["MOST_ALONE", "can_be_zero", "other_defaults", "other_integers", "steady_kinds", "value_kinds"]

MOST_ALONE = 8
"""So many inputs have cases of their own."""

_TYPES = onnx.TensorProto
_FLOATS = frozenset([_TYPES.FLOAT, _TYPES.DOUBLE, _TYPES.FLOAT16, _TYPES.BFLOAT16])
_FAR = 100.0
_LEAST_FAR, _LARGEST = 1.0, 1e4
_MOST_SPREAD = 1e300


def other_integers(missing: Sequence[Spec], roles: Mapping[str, Role]) -> list[str]:
    """The inputs of whole numbers that take others than the usual values, such as negative indices."""
    return [spec.name for spec in missing if roles.get(spec.name, Role()).ranges]


def value_kinds(
    missing: Sequence[Spec], roles: Mapping[str, Role], large: Set[str], avoid_nothing: bool, level: Level
) -> Iterator[tuple[str, str, int]]:
    """The kinds of values that get cases, the one input that is given them (or none: all are), and the number of cases."""
    full = level == "full"
    others = [name for name in other_integers(missing, roles) if not (avoid_nothing and roles[name].decisive)]
    if others and (full or len(others) > 1):
        yield "other integers", "", 4 if full else 1
    for name in others[: MOST_ALONE if full else len(others) == 1]:
        yield "other integers", name, 4 if full else 2
    if large:
        yield "large integers", "", 6 if full else 1
    sequences = [spec for spec in missing if spec.kind == "sequence"]
    if sequences and not avoid_nothing:
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
    for name in can_be_zero(missing, roles, avoid_nothing)[:MOST_ALONE] if full else ():
        yield "zero", name, 1


def steady_kinds(missing: Sequence[Spec]) -> list[str]:
    """Return the kinds of values that stay as they are along the first axis, or the second: they wear out what adds them up."""
    deepest = max((len(spec.dims or ()) for spec in missing if spec.elem_type in _FLOATS), default=0)
    return [kind for kind, rank in (("steady", 2), ("steady across", 3)) if deepest >= rank]


def can_be_zero(missing: Sequence[Spec], roles: Mapping[str, Role], avoid_nothing: bool) -> list[str]:
    """The inputs that may be all zero, or false, while the others are not; none where there are no others."""
    types = onnx.TensorProto
    left_out = (types.STRING, types.BOOL) if avoid_nothing else (types.STRING,)
    found = [spec.name for spec in missing if spec.elem_type not in left_out and not roles.get(spec.name, Role()).trips]
    return found if len(missing) > 1 else []


def other_defaults(defaults: Mapping[str, np.ndarray], by: str, seed: int) -> dict[str, np.ndarray]:
    """Return near values, negated ones, far ones or zeros."""
    random = np.random.default_rng([seed, len(defaults)])

    def other(array: np.ndarray) -> np.ndarray:
        wide = array.astype(np.float64)
        match by:
            case "negated":
                return -wide
            case "zeros":
                return np.zeros(array.shape)
            case "far":
                reach = max(_FAR * _spread(wide), _LEAST_FAR)
                moves = random.choice((-1.0, 1.0), array.shape) * random.uniform(reach, 2 * reach, array.shape)
                return np.asarray(np.clip(wide + moves, -_LARGEST, _LARGEST))
        return np.asarray(wide + _spread(wide) * random.standard_normal(array.shape))

    return {name: np.asarray(other(array)).astype(array.dtype) for name, array in defaults.items()}


def _spread(array: np.ndarray) -> float:
    """Return by how much to shake an array, even one of zeros: then no two of its elements that are finite stay equal."""
    finite = np.abs(array[np.isfinite(array)])
    return min(max(0.3 * float(finite.mean()), 0.1), _MOST_SPREAD) if finite.size else 0.0
