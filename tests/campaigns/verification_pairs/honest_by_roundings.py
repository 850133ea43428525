"""Pairs that compute the same up to roundings that something hangs on: a cancelled sum, a threshold, a chaotic loop, a type inside."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, pair
from tests.support.text import model_from_text

__all__ = ["honest_by_roundings"]

_AXIS = "a = Constant <value_ints = [{}]> ()"


def honest_by_roundings() -> list[Pair]:
    """All of them, in an order that does not change."""
    return [one for family in (_halves_inside, _sequences, _thresholds, _chaos) for one in family()]


def _halves_inside() -> Iterator[Pair]:
    """Outputs of float64 that are computed from float16 in a body or a function, at the first step or at a later one."""
    narrow, wide = "p = Mul(a, a) q = Tanh(p)", "a1 = Cast <to = 1> (a) p = Mul(a1, a1) q1 = Tanh(p) q = Cast <to = 10> (q1)"
    interface = "(double[T, 4] x, double[4] h) => (double[T, 4] y)"
    texts = {
        "a Scan": """y = Scan <num_scan_inputs = 1, body = b (double[4] e) => (double[4] o) {
          a = Cast <to = 10> (e) {} q2 = Cast <to = 11> (q) o = Add(q2, e) }> (x)""",
        "a Scan's state": """h0 = Cast <to = 10> (h) l, m, y = Scan <num_scan_inputs = 1,
          body = b (float16[4] a, double[4] s, double[4] e) => (float16[4] r, double[4] n, double[4] o) {
          {} d0 = Cast <to = 10> (e) r = Add(q, d0) n = Cast <to = 11> (q) o = Add(s, e) }> (h0, h, x)""",
        "an If": """n = Size(x) m = Constant <value_int = 9> () c = Less(n, m) y = If (c) <
          then_branch = t () => (double[T, 4] o) { a = Cast <to = 10> (x) {} o = Cast <to = 11> (q) },
          else_branch = f () => (double[T, 4] o2) { o2 = Add(x, h) }>""",
    }
    for name, text in texts.items():
        whole = f"g {interface} {{ {text} }}"
        yield pair(f"half in {name}", *(whole.replace("{}", each) for each in (narrow, wide)))
    called = f"""<ir_version: 10, opset_import: ["": 18, "half": 1]> g {interface} {{ y = half.f <to = 10> (x) }}
      <domain: "half", opset_import: ["": 18]> f <to> (x) => (y) {{ a = Cast <to: int = @to> (x) @@ y = Cast <to = 11> (q) }}"""
    yield Pair("half in a function", *(model_from_text(called.replace("@@", each)) for each in (narrow, wide)))


def _sequences() -> Iterator[Pair]:
    """Sums that cancel, as tensors, as sequences and in a list of two."""
    whole = "r = ReduceSum <keepdims = 0> (q, a)"
    halves = """h1, h2 = Split <axis = 1, num_outputs = 2> (q) p1 = ReduceSum <keepdims = 0> (h1, a)
      p2 = ReduceSum <keepdims = 0> (h2, a) r = Add(p1, p2)"""
    for large in ("1e3", "1e5"):
        for kind, last in (
            ("float[N]", "y = Identity(d)"),
            ("seq(float[N])", "y = SequenceConstruct(d)"),
            ("seq(float[N])", "y = SequenceConstruct(r, d)"),
        ):
            text = f"""g (float[N, 8] x) => ({kind} y) {{{{ {_AXIS.format(1)} k = Constant <value_float = {large}> ()
              e = Constant <value_float = {8 * float(large)}> () q = Add(x, k) {{}} d = Sub(r, e) {last} }}}}"""
            yield pair(f"a sum that cancels, {large}, {last}", text.format(whole), text.format(halves))
    text = f"""<ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]> g (float[N, 8] x) => (seq(map(int64, float)) y) {{{{
      {_AXIS.format(1)} k = Constant <value_float = 1e5> () e = Constant <value_float = 8e5> () q = Add(x, k) {{}} d = Sub(r, e)
      c = Unsqueeze(d, a) t = Concat <axis = 1> (c, c) y = ai.onnx.ml.ZipMap <classlabels_int64s = [1, 2]> (t) }}}}"""
    yield Pair("a sum that cancels, in maps", *(model_from_text(text.format(each), check=False) for each in (whole, halves)))
    text = f"""g (float[N, 8] x) => (float[N, 2] y) {{{{ {_AXIS.format(1)} k = Constant <value_float = 1e5> ()
      e = Constant <value_float = 8e5> () q = Add(x, k) {{}} d = Sub(r, e) c = Unsqueeze(d, a) y = Concat <axis = 1> (c, c) }}}}"""
    yield pair("a sum that cancels, in rows of two", text.format(whole), text.format(halves))
    text = "g (float[N, 8] x) => (seq(float[N, 8]) y) {{ h = Constant <value_float = 100.0> () t = Constant <value_float = 10.0> () {} s = Sin(r) y = SequenceConstruct(x, s) }}"
    yield pair("a sequence of sines", text.format("r = Mul(x, h)"), text.format("q = Mul(x, t) r = Mul(q, t)"))


def _thresholds() -> Iterator[Pair]:
    """What turns where sums round otherwise, of weights that have no last digit."""
    declared = "<float[8, 1] w = {{0.1, 0.2, 0.3, -0.1, -0.2, -0.3, 0.7, -0.7}}>"
    split = """h1, h2 = Split <axis = 1, num_outputs = 2> (x) w1, w2 = Split <axis = 0, num_outputs = 2> (w)
      p1 = MatMul(h1, w1) p2 = MatMul(h2, w2) m = Add(p2, p1)"""
    for last in ("y = Floor(m)", "y = Sign(m)", "y = Ceil(m)", "z = Sub(m, m) c = Equal(m, z) y = Cast <to = 1> (c)"):
        text = f"g (float[N, 8] x) => (float[N, 1] y) {declared} {{{{ {{}} {last} }}}}"
        yield pair(f"a threshold of a weighted sum, {last}", text.format("m = MatMul(x, w)"), text.format(split))
    text = f"g (float[N, 8] x) => (int64[N] y) {{{{ {_AXIS.format(1)} e = Softmax <axis = 1> (x) {{}} f = Floor(s) y = Cast <to = 7> (f) }}}}"
    halves = (
        "h1, h2 = Split <axis = 1, num_outputs = 2> (e) p1 = ReduceSum <keepdims = 0> (h1, a) p2 = ReduceSum <keepdims = 0> (h2, a)"
    )
    forms = "s = ReduceSum <keepdims = 0> (e, a)", f"{halves} s = Add(p1, p2)"
    yield pair("a threshold of a sum of probabilities", *(text.format(form) for form in forms))


def _chaos() -> Iterator[Pair]:
    """The logistic map from a constant, which forgets all digits; once from numbers without last digits."""
    forms = "m = Mul(k, s) d = Sub(u, s) r = Mul(m, d)", "q = Mul(s, s) d = Sub(s, q) r = Mul(d, k)"
    for factor, start in (("3.9", "0.3, 0.1, 0.7, 0.2"), ("3.75", "0.5, 0.25, 0.75, 0.125")):
        for kind, last in (("float[4]", "y = Add(r, x)"), ("seq(float[4])", "z = Add(r, x) y = SequenceConstruct(z)")):
            text = f"""g (float[4] x) => ({kind} y) {{{{
              h = Constant <value = float[4] {{{{{start}}}}}> () n = Constant <value_int = 100> () t = Constant <value = bool {{{{1}}}}> ()
              r = Loop (n, t, h) <body = b (int64 i, bool p, float[4] s) => (bool p2, float[4] r) {{{{
                p2 = Identity(p) u = Constant <value_float = 1.0> () k = Constant <value_float = {factor}> () {{}} }}}}> {last} }}}}"""
            yield pair(f"chaos from a constant, {factor}, {kind}", *(text.format(form) for form in forms))
