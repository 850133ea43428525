"""Operators that work element by element."""

from tests.campaigns.fuzz.partners import fits, partner
from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, elementwise
from tests.campaigns.fuzz.values import FLOATS, INTS, Val

__all__ = ["arithmetic", "bits", "cast_to", "chosen", "clipped", "comparison", "guarded", "logic", "rounded", "several", "smooth"]

SMOOTH = (
    "Tanh",
    "Sigmoid",
    "Relu",
    "LeakyRelu",
    "Elu",
    "Softplus",
    "Softsign",
    "Erf",
    "Sin",
    "Cos",
    "Abs",
    "Neg",
    "Celu",
    "Selu",
    "HardSwish",
    "Mish",
    "Gelu",
    "Identity",
    "HardSigmoid",
    "ThresholdedRelu",
    "Swish",
)


def smooth(s: Scope) -> Val | None:
    op = s.world.choose(SMOOTH)
    x = s.pick(lambda v: s.runs(op, v.dtype))
    return x and s.op(op, [x], x.dims)


def arithmetic(s: Scope) -> Val | None:
    op = s.world.choose(["Add", "Sub", "Mul", "Max", "Min", "Add", "Mul"])
    x = s.pick(lambda v: v.dtype in FLOATS + INTS and s.runs(op, v.dtype))
    if x is None:
        return None
    y = partner(s, x)
    return elementwise(s, op, *([x, y] if s.world.chance(0.5) else [y, x]))


def guarded(s: Scope) -> Val | None:
    """Square roots, logarithms, quotients and powers of what they take."""
    op = s.world.choose(["Sqrt", "Log", "Reciprocal", "Div", "Exp", "Pow"])
    x = s.pick(lambda v: v.dtype in FLOATS and s.runs(op, v.dtype))
    if x is None:
        return None
    if op == "Exp":
        return s.op("Exp", [s.op("Tanh", [x], x.dims)], x.dims)
    if op == "Pow":
        return elementwise(s, "Pow", x, s.real(2.0, x.dtype))
    safe = elementwise(s, "Add", s.op("Abs", [x], x.dims), s.real(0.5, x.dtype))
    return elementwise(s, "Div", partner(s, safe), safe) if op == "Div" else s.op(op, [safe], x.dims)


def rounded(s: Scope) -> Val | None:
    op = s.world.choose(["Floor", "Ceil", "Round", "Sign"])
    x = s.pick(lambda v: v.dtype in FLOATS and s.runs(op, v.dtype))
    return x and s.op(op, [x], x.dims)


def comparison(s: Scope) -> Val | None:
    op = s.world.choose(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
    x = s.pick(lambda v: s.runs(op, v.dtype))
    return x and elementwise(s, op, x, partner(s, x), dtype="bool")


def logic(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype == "bool")
    if x is None:
        return None
    op = s.world.choose(["And", "Or", "Xor", "Not"])
    return s.op("Not", [x], x.dims) if op == "Not" else elementwise(s, op, x, partner(s, x))


def chosen(s: Scope) -> Val | None:
    mask = s.pick(lambda v: v.dtype == "bool")
    x = s.pick(lambda v: s.runs("Where", v.dtype) and (mask is None or fits(s, mask, v)))
    if mask is None or x is None:
        return None
    y = partner(s, x)
    return elementwise(s, "Where", mask, *([x, y] if s.world.chance(0.5) else [y, x]), dtype=x.dtype) if fits(s, mask, y) else None


def cast_to(s: Scope) -> Val | None:
    dtype = s.world.choose(["float32", "int64", "int32", "bool", "float64", s.world.real])
    x = s.pick(lambda v: v.dtype != dtype and v.dtype in (*FLOATS, *INTS, "bool"))
    return x and cast(s, x, dtype)


def clipped(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype in FLOATS + INTS and s.runs("Clip", v.dtype))
    if x is None:
        return None
    if s.world.opset < 11:
        return s.op("Clip", [x], x.dims, min=-1.0, max=1.0)
    bounds: list[Val | None] = [s.const(-1, x.dtype), s.const(2, x.dtype)]
    return s.op("Clip", [x, *s.world.choose([bounds, bounds[:1], [None, bounds[1]]])], x.dims)


def several(s: Scope) -> Val | None:
    op = s.world.choose(["Sum", "Mean", "Max", "Min"])
    x = s.pick(lambda v: v.dtype in FLOATS and s.runs(op, v.dtype))
    if x is None:
        return None
    others = [partner(s, x) for _ in range(s.world.between(0, 2))]
    return elementwise(s, op, x, *others)


def bits(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype in INTS)
    if x is None:
        return None
    if s.runs("Mod", x.dtype) and s.world.chance(0.6):
        return elementwise(s, "Mod", x, s.const(3, x.dtype))
    if s.runs("BitwiseAnd", x.dtype):
        return elementwise(s, "BitwiseAnd", x, s.const(3, x.dtype))
    return elementwise(s, "Div", x, s.const(2, x.dtype)) if s.runs("Div", x.dtype) else None
