"""Pairs that differ for unusual inputs only: any divisor, indices from the end, extremes, equal sizes, nothing in a sequence."""

from collections.abc import Iterator

import numpy as np

from tests.campaigns.verification_pairs.pair import Pair, faulty, pair, with_weights
from tests.support.text import model_from_text

__all__ = ["unusual_pairs"]

_NUMBERS = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "uint32": 12, "uint64": 13}


def unusual_pairs() -> Iterator[Pair]:
    """All of them, in an order that does not change."""
    for family in (_divisors, _through_casts, _indices, _places, _counts, _integers, _sizes, _zeros, _defaults, _sequences):
        yield from family()


def _divisors() -> Iterator[Pair]:
    two = "g (float[N, 4] a, float[N, 4] b) => (float[N, 4] y) {{ {} }}"
    for name, changed in (("made positive", "Abs"), ("rounded up", "Ceil"), ("rounded", "Round"), ("clipped at 6", "c")):
        change = "h = Constant <value_float = 6.0> () c = Min(b, h)" if changed == "c" else f"c = {changed}(b)"
        yield pair(f"a divisor {name}", two.format("y = Div(a, b)"), two.format(f"{change} y = Div(a, c)"))
    guarded = "z = Constant <value_float = 1e-3> () p = Greater(b, z) q = Where(p, b, z) y = Div(a, q)"
    yield pair("a divisor guarded from zero", two.format("y = Div(a, b)"), two.format(guarded))
    one = "g (float[N, 4] x) => (float[N, 4] y) {{ ax = Constant <value_ints = [1]> () o = Constant <value_float = 1.0> () {} }}"
    yield pair(
        "a norm of signed numbers",
        one.format("b = Abs(x) s = ReduceSum(b, ax) y = Div(x, s)"),
        one.format("s = ReduceSum(x, ax) y = Div(x, s)"),
    )
    yield pair("softsign", one.format("b = Abs(x) d = Add(o, b) y = Div(x, d)"), one.format("d = Add(o, x) y = Div(x, d)"))
    mean = "g (float[N, 4] x, float[N, 4] m) => (float[N] y) {{ ax = Constant <value_ints = [1]> () p = Mul(x, m) n = ReduceSum <keepdims = 0> (p, ax) {} y = Div(n, d) }}"
    yield pair(
        "a masked mean, the mask made 1 at least",
        mean.format("d = ReduceSum <keepdims = 0> (m, ax)"),
        mean.format("o = Constant <value_float = 1.0> () q = Max(m, o) d = ReduceSum <keepdims = 0> (q, ax)"),
    )
    scan = """g (float[T, 4] x, float[4] h) => (float[T, 4] y) {{
      l, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] n, float[4] o) {{ {} n = Div(s, d) o = Identity(n) }}> (h, x) }}"""
    yield pair("a scan that divides its state", scan.format("d = Identity(e)"), scan.format("d = Abs(e)"))
    lengths = "g (int64[B] l, float[B, T] x) => (float[B] y) {{ a = Constant <value_ints = [1]> () s = ReduceSum <keepdims = 0> (x, a) f = Cast <to = 1> (l) {} y = Div(s, d) }}"
    yield pair(
        "a mean by lengths, one of them 0",
        lengths.format("d = Identity(f)"),
        lengths.format("o = Constant <value_float = 1.0> () d = Max(f, o)"),
    )


def _through_casts() -> Iterator[Pair]:
    text = "g (float[N] i, float[9] x) => (float[N] y) {{ {} j = Cast <to = 7> (f) y = Gather(x, j) }}"
    plain = text.format("f = Identity(i)")
    yield pair("a float index rounded down", text.format("f = Ceil(i)"), text.format("f = Floor(i)"))
    yield pair("a float index truncated", plain, text.format("f = Floor(i)"))
    zero = "z = Constant <value_float = 0.0> () f = Max(i, z)"
    yield pair("a float index from the end", plain, text.format(zero))


def _indices() -> Iterator[Pair]:
    nodes = {
        "Gather": ("int64[N] i", "float[N] y", "y = Gather(x, {})"),
        "GatherElements": ("int64[N] i", "float[N] y", "y = GatherElements(x, {})"),
        "GatherND": ("int64[N, 1] i", "float[N] y", "y = GatherND(x, {})"),
        "ScatterElements": (
            "int64[N] i",
            "float[8] y",
            's0 = Cast <to = 1> (i) s = Sub(s0, s0) y = ScatterElements <reduction = "mul"> (x, {}, s)',
        ),
        "ScatterND": ("int64[N, 1] i", "float[8] y", 's0 = Cast <to = 1> (i) a = Constant <value_ints = [1]> () s1 = Squeeze(s0, a) s = Sub(s1, s1) y = ScatterND <reduction = "mul"> (x, {}, s)'),
    }  # fmt: skip
    for name, (index, result, node) in nodes.items():
        text = f"g (float[8] x, {index}) => ({result}) {{{{ {{}} }}}}"
        clipped = f"z = Constant <value_int = 0> () j = Max(i, z) {node.format('j')}"
        yield pair(f"{name} from the end", text.format(node.format("i")), text.format(clipped))
    text = "g (float[8, 3] x, int64[N] i, int64[N, M] j) => (float[N, 3] y, float[N, M, 3] z) {{ {} z = Gather(x, j) }}"
    last = "m = Constant <value_int = -1> () c = Equal(i, m) k = Constant <value_int = 0> () e = Where(c, k, i) y = Gather(x, e)"
    yield pair("the last of two indices", text.format("y = Gather(x, i)"), text.format(last))
    embedded = """g (int64[T] i, float[8, 3] v, float[3] h) => (float[3] y) {{
      y = Scan <num_scan_inputs = 1, body = b (float[3] s, int64 e) => (float[3] n) {{ {} r = Gather(v, k) n = Add(s, r) }}> (h, i) }}"""
    zero = "z = Constant <value_int = 0> () k = Max(e, z)"
    yield pair("an index from the end in a body", embedded.format("k = Identity(e)"), embedded.format(zero))


def _places() -> Iterator[Pair]:
    cut = "g (float[N] x, int64[1] s, int64[1] e) => (float[K] y) {{ z = Constant <value_ints = [0]> () {} }}"
    yield pair("a cut from the first on", cut.format("y = Slice(x, s, e)"), cut.format("y = Slice(x, z, e)"))
    yield pair(
        "a cut from a place that counts up", cut.format("y = Slice(x, s, e)"), cut.format("b = Max(s, z) y = Slice(x, b, e)")
    )
    yield pair("a cut to the last", cut.format("y = Slice(x, s, e)"), cut.format("b = Max(e, z) y = Slice(x, s, b)"))
    stepped = "g (float[N] x, int64[1] p) => (float[K] y) {{ b = Constant <value_ints = [{}]> () e = Constant <value_ints = [{}]> () a = Constant <value_ints = [0]> () {} y = Slice(x, b, e, a, q) }}"
    for name, begin, end in (("back", -1, -(2**62)), ("of three", 0, 2**62)):
        three = "t = Constant <value_ints = [2]> () o = Constant <value_ints = [-2]> () u = Min(p, t) q = Max(u, o)"
        changed = "q = Abs(p)" if name == "back" else three
        yield pair(f"a step {name}", stepped.format(begin, end, "q = Identity(p)"), stepped.format(begin, end, changed))
    for name, node, ranks in (
        ("CumSum", "CumSum(x, {})", "float[N, 4] y"),
        ("Unsqueeze", "Unsqueeze(x, {})", "float[A, B, C] y"),
        ("Squeeze", "Squeeze(x1, {})", "float[A, B, C] y"),
    ):
        more = "p = Constant <value_ints = [0, 3]> () x1 = Unsqueeze(x, p) " if name == "Squeeze" else ""
        text = f"g (float[N, 4] x, int64[1] ax) => ({ranks}) {{{{ {more}{{}} }}}}"
        zero = f"z = Constant <value_ints = [0]> () y = {node.format('z')}"
        yield pair(f"the axis of {name}", text.format(f"y = {node.format('ax')}"), text.format(zero))
    cut = "g (float[N, 4] x, int64[1] ax) => (float[A, B] y) {{ o = Constant <value_ints = [1]> () z = Constant <value_ints = [0]> () {} }}"
    yield pair("the axis of a cut", cut.format("y = Slice(x, z, o, ax)"), cut.format("y = Slice(x, z, o, z)"))


def _counts() -> Iterator[Pair]:
    largest = "g (float[N, 9] x, int64[1] k) => (float[N, K] y) {{ {} }}"
    for most in (1, 8):
        few = f"z = Constant <value_ints = [{most}]> () l = Min(k, z) y, i = TopK(x, l)"
        yield pair(f"the {most} largest at most", largest.format("y, i = TopK(x, k)"), largest.format(few))
    steps = "g (int64 s, int64 e, int64 d) => (int64[N] y) {{ o = Constant <value_int = {}> () {} }}"
    yield pair("a range by ones", steps.format(1, "y = Range(s, e, d)"), steps.format(1, "y = Range(s, e, o)"))
    yield pair("a range upwards", steps.format(1, "y = Range(s, e, d)"), steps.format(1, "p = Max(d, o) y = Range(s, e, p)"))
    yield pair("a range from 0", steps.format(0, "y = Range(s, e, d)"), steps.format(0, "p = Max(s, o) y = Range(p, e, d)"))
    for name, node in (("Mod", "Mod(a, {})"), ("Div", "Div(a, {})")):
        text = "g (int64[N] a, int64[1] m) => (int64[N] y) {{ {} }}"
        yield pair(
            f"{name} by less than 0", text.format(f"y = {node.format('m')}"), text.format(f"b = Abs(m) y = {node.format('b')}")
        )
    text = "g (float[N, 4] x, int64[4] p) => (float[A, B] y) {{ z = Constant <value_int = 0> () {} }}"
    yield pair("a pad that cuts", text.format("y = Pad(x, p)"), text.format("q = Max(p, z) y = Pad(x, q)"))
    text = "g (float[N, 4] x, int64[2] r) => (float[A, B] y) {{ o = Constant <value_int = 1> () {} }}"
    yield pair("a tile of none", text.format("y = Tile(x, r)"), text.format("q = Max(r, o) y = Tile(x, q)"))
    text = "g (int64[N] x, int64 d) => (float[A, B] y) {{ v = Constant <value_floats = [0.0, 1.0]> () o = Constant <value_int = 2> () {} }}"
    yield pair("one of one", text.format("y = OneHot(x, d, v)"), text.format("q = Max(d, o) y = OneHot(x, q, v)"))
    text = "g (seq(float[N]) x, int64 p) => (float[N] y) {{ z = Constant <value_int = 0> () {} }}"
    yield pair("an item from the end", text.format("y = SequenceAt(x, p)"), text.format("q = Max(p, z) y = SequenceAt(x, q)"))


def _integers() -> Iterator[Pair]:
    for kind, values in (
        ("uint8", (255, 128, 100)), ("int8", (-128, 127, 100)), ("int16", (-(2**15), 1000)), ("uint16", (2**16 - 1, 10_000)),
        ("int32", (-(2**31), 2**31 - 1, 65536, -100)), ("int64", (-(2**63), 2**63 - 1, -1, 100, 10**6, 2**32)), ("uint32", (2**32 - 1,)), ("uint64", (2**64 - 1, 2**63)),
    ):  # fmt: skip
        for value in values:
            number = value - 2**64 if value >= 2**63 else value
            changed = f"""w = Constant <value = int64 {{{number}}}> () m = Cast <to = {_NUMBERS[kind]}> (w) z = Sub(m, m)
              c = Equal(a, m) y = Where(c, z, a)"""
            text = f"g ({kind}[N] a) => ({kind}[N] y) {{{{ {{}} }}}}"
            yield pair(f"{kind} of {value}", text.format("y = Identity(a)"), text.format(changed), 21)
    between = "m = Constant <value_int = 10> () n = Constant <value_int = 100000> () l = Greater(a, m) h = Less(a, n) c = And(l, h) d = Cast <to = 7> (c) y = Add(a, d)"
    text = "g (int64[N] a) => (int64[N] y) {{ {} }}"
    yield pair("int64 between 10 and 100000", text.format("y = Identity(a)"), text.format(between))
    text = "g (int64[1] a) => (int64[1] y) {{ {} }}"
    least = "m = Constant <value = int64 {{-9223372036854775807}}> () b = Max(a, m) y = Identity(b)".replace("{{", "{").replace(
        "}}", "}"
    )
    yield pair("a single least integer", text.format("y = Identity(a)"), text.format(least))


def _sizes() -> Iterator[Pair]:
    core = "a = Constant <value_ints = [0]> () y1 = ReduceSum <keepdims = 0> (x, a) y0 = Add(y1, h)"
    dims = """q = Constant <value_ints = [0]> () s0 = Shape <start = 0, end = 1> (x) d = Squeeze(s0, q) s1 = Shape <start = 1, end = 2> (x) e = Squeeze(s1, q)
      n0 = Constant <value_int = 0> () k1 = Constant <value_int = 1> () k2 = Constant <value_int = 2> () k100 = Constant <value_int = 100> ()"""
    for name, condition in (
        ("T is B above 2", "l = Equal(d, e) r = Greater(d, k2)"),
        ("T above 100, B is 1", "l = Greater(d, k100) r = Equal(e, k1)"),
        ("B above 100, T is 1", "l = Greater(e, k100) r = Equal(d, k1)"),
        ("T is 0, B is 1", "l = Equal(d, n0) r = Equal(e, k1)"),
        ("T is 0, B is above 1", "l = Equal(d, n0) r = Greater(e, k1)"),
    ):
        interface = "(float[T, B, 4] x, float[B, 4] h) => (float[B, 4] y)"
        yield faulty(name, interface, core, f"{dims} {condition} c = And(l, r)")
    both = "n = Shape(x) z = Constant <value_int = 0> () t0 = Equal(n, z) t = Cast <to = 7> (t0) s = ReduceSum <keepdims = 0> (t) k = Constant <value_int = {}> () c = Equal(s, k) f = Cast <to = 1> (c) y = Add(f, f)"
    text = "g (float[T, B] x) => (float y) {{ {} }}"
    yield pair("T and B are 0", text.format(both.format(9)), text.format(both.format(2)))


def _zeros() -> Iterator[Pair]:
    core = "a = Constant <value_ints = [0]> () y1 = ReduceSum <keepdims = 0> (x, a) y0 = Add(y1, h)"
    for zero, other in (("x", "h"), ("h", "x")):
        condition = f"z = Constant <value_float = 0.0> () p = Abs({zero}) m = ReduceMax <keepdims = 0> (p) q = Abs({other}) n = ReduceMax <keepdims = 0> (q) l = Equal(m, z) r = Greater(n, z) c = And(l, r)"
        yield faulty(f"{zero} all zero, {other} not", "(float[4, B, 4] x, float[B, 4] h) => (float[B, 4] y)", core, condition)
    condition = "i = Cast <to = 6> (m) r = ReduceMax <keepdims = 0> (i) c1 = Cast <to = 9> (r) c2 = Not(c1) z = Constant <value_float = 0.0> () q = Abs(x) n = ReduceMax <keepdims = 0> (q) c3 = Greater(n, z) c = And(c2, c3)"
    yield faulty("mask all false, x not zero", "(bool[N] m, float[N] x) => (float[N] y)", "y0 = Where(m, x, x)", condition)


def _defaults() -> Iterator[Pair]:
    text = "g (float[N, 4] x, float[1] k) => (float[N, 4] y) {{ {} y = Mul(x, j) }}"
    changes = {
        "of the other sign": "j = Abs(k)",
        "far away": "h = Constant <value_float = 10.0> () l = Constant <value_float = -10.0> () m = Min(k, h) j = Max(m, l)",
        "of zero": "e = Constant <value_float = 0.01> () a = Abs(k) c = Less(a, e) j = Where(c, e, k)",
    }
    for name, changed in changes.items():
        models = [model_from_text(text.format(each), 18) for each in ("j = Identity(k)", changed)]
        yield Pair(f"a default {name}", *(with_weights(each, {"k": np.ones(1, np.float32)}, overridable=True) for each in models))


def _sequences() -> Iterator[Pair]:
    text = "g (seq(float[N]) s) => (float[1] y) {{ n = SequenceLength(s) f = Cast <to = 1> (n) u = Constant <value_ints = [1]> () {} y = Reshape(m, u) }}"
    plain = text.format("m = Identity(f)")
    yield pair("a sequence without items", plain, text.format("o = Constant <value_float = 1.0> () m = Max(f, o)"))
    yield pair("a sequence of many items", plain, text.format("o = Constant <value_float = 3.0> () m = Min(f, o)"))
    text = "g (seq(float[N]) s) => (int64 y) {{ z = Constant <value_int = 0> () o = Constant <value_int = -1> () a = SequenceAt(s, z) b = SequenceAt(s, o) m = Size(a) n = Size(b) {} }}"
    yield pair("items of two sizes", text.format("y = Sub(m, n)"), text.format("y = Sub(m, m)"))
    text = "g (optional(float[N]) o) => (bool y) {{ {} }}"
    always = "y = Constant <value = bool {1}> ()"
    yield pair("an optional that is absent", text.format("y = OptionalHasElement(o)"), text.format(always))
