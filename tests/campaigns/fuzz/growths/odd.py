"""Operators met less often: convolution, dropout, quantisation, strings, branches, sequences."""

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.spelt import cast, elementwise, squeeze, unsqueeze
from tests.campaigns.fuzz.values import FLOATS, Val

__all__ = ["branch", "convolved", "dropped", "microsoft", "quantised", "sequenced", "triangle", "words"]


def branch(s: Scope) -> Val | None:
    """An If on a number of one element."""
    x = s.pick(lambda v: s.runs("Identity", v.dtype))
    judge = s.pick(lambda v: v.dtype == "bool" and v.dims == ()) or _judgement(s)
    if x is None or judge is None:
        return None
    made: dict[str, Val] = {}
    graphs = {}
    for name in ("then_branch", "else_branch"):
        inner = s.inner()
        ops = [op for op in ("Identity", "Neg", "Abs", "Tanh") if s.runs(op, x.dtype)]
        first = inner.op(s.world.choose(ops), [x], x.dims)
        made[name] = (
            inner.op("Add", [first, inner.const(1, x.dtype)], x.dims) if x.dtype in FLOATS and s.world.chance(0.4) else first
        )
        graphs[name] = inner.graph(s.world.name("branch"), [], [made[name]], s.world.choose(["types", "sizes", "ranks"]))
    s.world.feature("If")
    return s.op("If", [judge], x.dims, x.dtype, **graphs)


def _judgement(s: Scope) -> Val | None:
    n = s.pick(lambda v: v.dims == () and s.runs("Less", v.dtype) and v.dtype != "string")
    return n and s.op("Less", [n, s.const(s.world.choose([0, 1, 2]), n.dtype)], (), "bool")


def dropped(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype in FLOATS and s.runs("Dropout", v.dtype))
    if x is None:
        return None
    if s.world.opset >= 12 and s.world.chance(0.5):
        return s.op("Dropout", [x, s.const(0.4, "float32")], x.dims)
    return s.op("Dropout", [x], x.dims)


def convolved(s: Scope) -> Val | None:
    x = s.pick(
        lambda v: v.rank in (2, 3) and v.dtype == "float32" and isinstance(v.shape[-2], int) and isinstance(v.shape[-1], int)
    )
    if x is None:
        return None
    wide = x if x.rank == 3 else unsqueeze(s, x, 0)
    channels, out = int(wide.shape[1]), s.world.width()
    weight = s.const(s.world.array("float32", (out, channels, 1), 0.5), "float32")
    y = s.op("Conv", [wide, weight], (wide.shape[0], out, wide.shape[2]), kernel_shape=[1])
    return y if x.rank == 3 else squeeze(s, y, 0)


def triangle(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.rank == 2 and s.runs("Trilu", v.dtype) and v.dtype in FLOATS)
    return x and s.op("Trilu", [x], x.dims, upper=s.world.between(0, 1))


def quantised(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype == "float32")
    if x is None or s.world.opset < 10:
        return None
    scale, zero = s.const(0.05, "float32"), s.const(0, s.world.choose(["int8", "uint8"]))
    return s.op("DequantizeLinear", [s.op("QuantizeLinear", [x, scale, zero], x.dims, zero.dtype), scale, zero], x.dims, "float32")


def microsoft(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype == "float32" and v.rank > 0)
    if x is None or s.world.body_types == "untyped":
        return None
    s.main.world.feature("com.microsoft operator")
    return s.ops(s.world.choose(["Gelu", "QuickGelu"]), [x], [x.of()], domain="com.microsoft")[0]


def words(s: Scope) -> Val | None:
    x = s.pick(lambda v: v.dtype == "string")
    if x is None:
        return None
    if s.world.opset >= 20 and s.world.chance(0.4):
        return s.op("StringConcat", [x, x], x.dims)
    return cast(s, elementwise(s, "Equal", x, x, dtype="bool"), "float32") if s.runs("Equal", "string") else None


def sequenced(s: Scope) -> Val | None:
    """Into a sequence and out of it again."""
    x = s.pick(lambda v: v.dtype in ("float32", "int64") and v.rank > 0)
    if x is None or s.world.opset < 11:
        return None
    made = s.op("SequenceConstruct", [x, x], None)
    return s.op("SequenceAt", [made, s.int(s.world.choose([0, 1]))], x.dims)
