"""Values whose sizes change from step to step, or depend on data: made of an integer in sight, and reduced again."""

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, concat, reduce, slice_, unsqueeze
from tests.campaigns.fuzz.values import FLOATS, Val

__all__ = ["compressed", "counted_off", "cut_by_number", "filled_by_number", "found", "repeated_by_number"]


def _number(s: Scope) -> Val | None:
    """A small integer that is not negative: one in sight, or the index of the largest element of a vector."""
    vector = s.pick(lambda v: v.rank == 1 and v.dtype == "float32")
    if vector is not None and s.world.chance(0.3):
        return s.op("ArgMax", [vector], (), "int64", axis=0, keepdims=0)
    n = s.pick(lambda v: v.dtype == "int64" and v.dims == ())
    if n is None or s.world.opset < 12:
        return None
    return s.op("Clip", [n, s.int(0), s.int(3)], ())


def _back(s: Scope, x: Val, axis: int) -> Val:
    """Mostly something of one size again."""
    if s.world.chance(0.75) and x.dtype in FLOATS:
        return reduce(s, "ReduceSum", x, [axis], s.world.chance(0.3))
    return x


def cut_by_number(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank > 0 and v.dtype in FLOATS and s.runs("Slice", v.dtype))
    n = _number(s)
    if x is None or n is None:
        return None
    at = s.world.between(0, x.rank - 1)
    end = unsqueeze(s, n, 0)
    start = s.ints(0)
    if s.world.chance(0.3):
        start, end = end, s.ints(2**31 - 1)
    cut = slice_(s, x, start, end, at, length=s.world.derive(1))
    if s.world.chance(0.3):
        rest = slice_(s, x, end, s.ints(2**31 - 1), at, length=s.world.derive(1)) if start.name != end.name else cut
        return concat(s, [cut, rest], at).of(x.dims) if s.world.chance(0.5) and start is not end else _back(s, cut, at)
    return _back(s, cut, at)


def filled_by_number(s: Scope) -> Val | None:
    n = _number(s)
    if n is None:
        return None
    from tests.campaigns.fuzz.spelt import one_element

    made = s.op("ConstantOfShape", [unsqueeze(s, n, 0)], (s.world.derive(1),), s.world.real, value=one_element(0.5, s.world.real))
    return _back(s, made, 0)


def counted_off(s: Scope) -> Val | None:
    n = _number(s)
    if n is None:
        return None
    line = s.op("Range", [s.int(0), n, s.int(1)], (s.world.derive(1),))
    return _back(s, cast(s, line, s.world.real), 0)


def repeated_by_number(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank in (1, 2) and v.dtype in FLOATS and s.runs("Tile", v.dtype))
    n = _number(s)
    if x is None or n is None:
        return None
    shape = concat(s, [unsqueeze(s, n, 0), *([s.ints(1)] if x.rank == 2 else [])], 0).of((x.rank,))
    return _back(s, s.op("Tile", [x, shape], (s.world.derive(1), *x.shape[1:])), 0)


def compressed(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank == 1 and v.dtype in FLOATS and s.runs("Compress", v.dtype))
    if x is None:
        return None
    kept = s.op("Greater", [x, s.real(0.0, x.dtype)], x.dims, "bool")
    return _back(s, s.op("Compress", [x, kept], (s.world.derive(1),), axis=0), 0)


def found(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank in (1, 2) and s.runs("NonZero", v.dtype))
    if x is None:
        return None
    places = s.op("NonZero", [x], (x.rank, s.world.derive(1)), "int64")
    return reduce(s, "ReduceSum", cast(s, places, "float32"), [1])
