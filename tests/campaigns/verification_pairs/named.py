"""Pairs that differ at values which a model itself names, and at the ends and turning points of what values can be."""

from collections.abc import Iterator

import numpy as np

from tests.campaigns.verification_pairs.pair import Pair, faulty, pair, with_weights
from tests.support.text import model_from_text

__all__ = ["wrong_at_named_values"]

_LOOKUP = '<ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]>'


def wrong_at_named_values() -> Iterator[Pair]:
    """All of them, in an order that does not change."""
    for family in (_thresholds, _places, _strings, _tables, _exact, _series, _absent):
        yield from family()


def _thresholds() -> Iterator[Pair]:
    for threshold in (5.0, 3.0, -7.25, 42.0, 1e6):
        text = f"g (float[N, 4] x) => (bool[N, 4] y) {{{{ m = Constant <value_float = {threshold}> () y = {{}}(x, m) }}}}"
        yield pair(f"at {threshold} or above", text.format("Greater"), text.format("GreaterOrEqual"))
        yield pair(f"at {threshold} or below", text.format("Less"), text.format("LessOrEqual"))
    for kind, threshold in (("int64", 37), ("int64", 50256), ("int32", -100277), ("uint8", 200), ("int64", 10**12)):
        number = {"int64": 7, "int32": 6, "uint8": 2}[kind]
        text = f"""g ({kind}[N] x) => (bool[N] y) {{{{ w = Constant <value_int = {threshold}> () m = Cast <to = {number}> (w)
          y = {{}}(x, m) }}}}"""
        yield pair(f"{kind} at {threshold} or above", text.format("Greater"), text.format("GreaterOrEqual"))
        yield pair(f"{kind} at {threshold} alone", text.format("Equal"), text.format("Equal").replace(f"= {threshold}>", "= 11>"))
    text = "g (int64[N] x, float[N] e) => (float[N] y) {{ m = Constant <value_int = 50256> () {} }}"
    masked = "c = Equal(x, m) z = Sub(e, e) y = Where(c, z, e)"
    yield pair("a padding that is not masked", text.format(masked), text.format("y = Identity(e)"))
    embedded = "g (int64[1] i, float[30000, 1] t) => (float[1, 1] y) {{ r = Gather(t, i) {} }}"
    marked = "m = Constant <value_int = 29871> () c = Equal(i, m) u = Constant <value_ints = [1]> () d = Unsqueeze(c, u) z = Sub(r, r) y = Where(d, z, r)"
    weights = {"t": np.arange(1, 30001, dtype=np.float32).reshape(-1, 1)}
    models = [with_weights(model_from_text(embedded.format(last), 18), weights) for last in (marked, "y = Identity(r)")]
    yield Pair("a single id that is a padding", *models)


def _places() -> Iterator[Pair]:
    """Thresholds behind what is linear, in bodies, branches and functions."""
    text = "g (float[N, 4] x) => (bool[N, 4] y) {{ k = Constant <value_float = 2.0> () s = Constant <value_float = 3.0> () m = Constant <value_float = 19.0> () a = Mul(x, k) b = Sub(s, a) y = {}(b, m) }}"
    yield pair("a threshold of what is linear", text.format("Greater"), text.format("GreaterOrEqual"))
    text = "g (int64[N] x) => (bool[N] y) {{ o = Constant <value_int = 3> () m = Constant <value_int = 1000> () a = Add(x, o) b = Abs(a) y = {}(b, m) }}"
    yield pair("a threshold of a magnitude", text.format("Greater"), text.format("GreaterOrEqual"))
    text = """g (float[T, 4] x, float[4] h) => (float[4] y) {{
      y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] n) {{
        m = Constant <value_float = 17.0> () c = {}(e, m) f = Cast <to = 1> (c) n = Add(s, f) }}> (h, x) }}"""
    yield pair("a threshold in a body", text.format("Less"), text.format("LessOrEqual"))
    text = """g (float[N] x, bool p) => (bool[N] y) {{ m = Constant <value_float = 17.0> () y = If (p) <
      then_branch = t () => (bool[N] a) {{ a = {}(x, m) }}, else_branch = f () => (bool[N] b) {{ b = Less(m, x) }}> }}"""
    yield pair("a threshold in a branch", text.format("Less"), text.format("LessOrEqual"))
    text = """<ir_version: 10, opset_import: ["": 18, "own": 1]> g (float[N] x) => (bool[N] y) {{ m = Constant <value_float = 17.0> () y = own.f(m, x) }}
      <domain: "own", opset_import: ["": 18]> f (m, x) => (y) {{ y = {}(x, m) }}"""
    yield Pair("a threshold in a function", *(model_from_text(text.format(each)) for each in ("Less", "LessOrEqual")))
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ l = Constant <value_float = -20.0> () h = Constant <value_float = {}> () y = Clip(x, l, h) }}"
    yield pair("clipped a little lower", text.format("30.0"), text.format("29.99"))
    text = "g (int64[N] x) => (int64[N, 40] y) {{ d = Constant <value_int = 40> () v = Constant <value_ints = [0, 1]> () {} y = OneHot(i, d, v) }}"
    last = "m = Constant <value_int = 38> () i = Min(x, m)"
    yield pair("the last of forty", text.format("i = Identity(x)"), text.format(last))
    trips = "t = Constant <value = bool {1}> () y0 = Loop(n, t, h) <body = b (int64 i, bool q, float[3] s) => (bool q2, float[3] r) { q2 = Identity(q) r = Sin(s) }>"
    for count in (6, 40):
        condition = f"m = Constant <value_int = {count}> () c = Equal(n, m)"
        yield faulty(f"{count} trips, named", "(int64 n, float[3] h) => (float[3] y)", trips, condition)


def _strings() -> Iterator[Pair]:
    text = _LOOKUP + " g ({} x) => (int64[N] y) {{ y = ai.onnx.ml.LabelEncoder <{}, values_int64s = [{}]> (x) }}"
    for name, kind, keys in (
        ("words", "string[N]", 'keys_strings = ["cat", "dog"]'),
        ("numbers", "int64[N]", "keys_int64s = [1001, 1002]"),
        ("large numbers", "int64[N]", "keys_int64s = [1000000001, 1000000002]"),
        ("floats", "float[N]", "keys_floats = [12.5, 77.0]"),
    ):
        yield Pair(f"{name} exchanged", *(model_from_text(text.format(kind, keys, each)) for each in ("1, 2", "2, 1")))
    text = 'g (string[N] x) => (bool[N] y) {{ e = Constant <value_string = "{}"> () y = Equal(x, e) }}'
    yield pair("another word", text.format("yes"), text.format("no"), 19)
    text = 'g (string[N] x) => (bool[N] y) {{ y = RegexFullMatch <pattern = "{}"> (x) }}'
    yield pair("another pattern", text.format("[0-9]+"), text.format("[0-9]*x[0-9]*"), 20)
    yield pair("a pattern of one word", text.format("(hello|world)"), text.format("(hello|word)"), 20)


def _tables() -> Iterator[Pair]:
    for count, changed in (("N", "the last"), ("N", "the first"), ("1", "the last"), ("1", "the first")):
        table = np.arange(1, 1001, dtype=np.float32)
        other = table.copy()
        other[-1 if changed == "the last" else 0] = -7
        text = f"g (int64[{count}] i, float[1000] t) => (float[{count}] y) {{ y = Gather(t, i) }}"
        models = [with_weights(model_from_text(text, 18), {"t": each}) for each in (table, other)]
        yield Pair(f"{changed} of a table, {count} indices", *models)
    text = "g (int64[N] i, float[1000] t) => (float[N] y) {{ k = Constant <value_int = 998> () {} y = Gather(t, j) }}"
    yield pair("an index clipped to the last but one", text.format("j = Identity(i)"), text.format("j = Min(i, k)"))


def _exact() -> Iterator[Pair]:
    half = "h = Constant <value_float = 0.5> () s = Add(x, h) y = Floor(s)"
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ {} }}"
    above = "t = Constant <value_float = 2.0> () a = Abs(x) c = Greater(a, t) q = Round(x)"
    yield pair(
        "half to even above 2", text.format("y = Round(x)"), text.format(f"{above} {half.replace('y =', 'f =')} y = Where(c, f, q)")
    )
    text = "g (float[N, 4] x) => (uint8[N, 4] y) {{ s = Constant <value_float = 0.5> () z = Constant <value = uint8 {{8}}> () {} }}"
    up = "d = Div(x, s) h = Constant <value_float = 0.5> () e = Add(d, h) f = Floor(e) o = Constant <value_float = 8.0> () g = Add(f, o) l = Constant <value_float = 0.0> () m = Constant <value_float = 255.0> () c = Clip(g, l, m) y = Cast <to = 2> (c)"
    yield pair("quantized half up", text.format("y = QuantizeLinear(x, s, z)"), text.format(up))
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ z = Constant <value_float = 0.0> () {} }}"
    yield pair("the sign of zero", text.format("y = Reciprocal(x)"), text.format("a = Add(x, z) y = Reciprocal(a)"))
    turned = "a = Sub(z, x) n = Sub(z, a) y = Reciprocal(n)"
    yield pair("the sign of zero, negated twice", text.format("n = Neg(x) m = Neg(n) y = Reciprocal(m)"), text.format(turned))


def _series() -> Iterator[Pair]:
    interface = "(float[T, B, 3] x, float[1, 8, 3] w, float[1, 8, 2] r) => (float[1, B, 2] y)"
    text = f"g {interface} {{{{ a, h, c = LSTM <hidden_size = 2> (x, w, r) {{}} }}}}"
    clipped = "l = Constant <value_float = -20.0> () u = Constant <value_float = 20.0> () y = Clip(c, l, u)"
    yield pair("a cell clipped at 20", text.format("y = Identity(c)"), text.format(clipped))
    nested = """t = Constant <value = bool {1}> () y0 = Loop(n, t, h) <body = b (int64 i, bool q, float[3] s) => (bool q2, float[3] r) {
      q2 = Identity(q) r = Loop(m, t, s) <body = b2 (int64 j, bool p, float[3] u) => (bool p2, float[3] v) { p2 = Identity(p) v = Sin(u) }> }>"""
    condition = "e = Constant <value_int = 0> () c1 = Less(n, e) c2 = Less(m, e) c = And(c1, c2)"
    yield faulty("both trip counts below 0", "(int64 n, int64 m, float[3] h) => (float[3] y)", nested, condition)
    text = "g (seq(float[N]) s) => (int64 y) {{ n = SequenceLength(s) k = Constant <value_int = {}> () z = Sub(n, n) c = {}(n, k) y = Where(c, z, n) }}"
    plain = "g (seq(float[N]) s) => (int64 y) { y = SequenceLength(s) }"
    for count in (4, 5):
        yield pair(f"a sequence of {count}", plain, text.format(count, "Equal"))
    yield pair("a sequence of more than 7", plain, text.format(7, "Greater"))


def _absent() -> Iterator[Pair]:
    text = "g (optional(float[N]) a, optional(float[N]) b, optional(float[N]) d) => (bool y) {{ p = OptionalHasElement(a) q = OptionalHasElement(b) r = OptionalHasElement(d) {} }}"
    some = "s = Or(p, q) y = Or(s, r)"
    two = "s = And(p, q) t = And(p, r) u = And(q, r) v = Or(s, t) y = Or(v, u)"
    only = some, two
    yield pair("two of three optionals absent", *(text.format(each) for each in only))
    text = "g (float[N] x, float[1] k, float[1] b) => (float[N] y) {{ z = Constant <value_float = 0.0> () m = Mul(x, k) a = Add(m, b) {} }}"
    both = "c1 = Equal(k, z) c2 = Equal(b, z) c3 = Not(c2) c = And(c1, c3) y = Where(c, z, a)"
    weights = {name: np.ones(1, np.float32) for name in ("k", "b")}
    models = [with_weights(model_from_text(text.format(last), 18), weights, overridable=True) for last in ("y = Identity(a)", both)]
    yield Pair("one default 0, the other not", *models)
