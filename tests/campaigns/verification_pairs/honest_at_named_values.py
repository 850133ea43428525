"""Pairs that compute the same and need care: at values that the models name, or because of roundings."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, pair
from tests.support.text import model_from_text

__all__ = ["honest_at_named_values", "honest_by_roundings"]


_LOOKUP = '<ir_version: 10, opset_import: ["": 18, "ai.onnx.ml": 3]>'
_NUMBERS = {"float": 1, "double": 11, "float16": 10}


def honest_at_named_values() -> Iterator[Pair]:
    """All of them, in an order that does not change."""
    for family in (_thresholds, _whole, _rounded, _words, _zeros, _steady):
        yield from family()


def _thresholds() -> Iterator[Pair]:
    for kind, number in _NUMBERS.items():
        text = f"g ({kind}[N, 4] x) => (bool[N, 4] y) {{{{ {{}} y = Greater(b, a) }}}}"

        def constants(to: int = number, **values: float) -> str:
            made = (
                f"{name}0 = Constant <value = double {{{value}}}> () {name} = Cast <to = {to}> ({name}0)"
                for name, value in values.items()
            )
            return " ".join(made)

        for threshold in (5.0, 0.1, -7.3, 42.0):
            plain = f"{constants(a=threshold)} b = Identity(x)"
            for name, other in (
                ("doubled", f"{constants(a=2 * threshold, k=2.0)} b = Mul(x, k)"),
                ("times three", f"{constants(a=3 * threshold, k=3.0)} b = Mul(x, k)"),
                ("moved by one", f"{constants(a=threshold + 1, k=1.0)} b = Add(x, k)"),
                ("negated", f"{constants(h=-threshold)} n = Neg(x) a = Identity(n) b = Identity(h)"),
                ("by parts of 255", f"{constants(a=threshold / 255, k=255.0)} b = Div(x, k)"),
            ):
                if kind == "float16" and name == "by parts of 255":
                    continue  # onnxruntime divides halves as float32, so that 5 / 255 is above what it rounds to
                yield pair(f"a threshold at {threshold} {name}, {kind}", text.format(plain), text.format(other))
        parts = text.format(f"{constants(a=0.5, k=255.0)} b = Div(x, k)")
        yield pair(f"half of 255, {kind}", parts, text.format(f"{constants(a=0.5, k=1 / 255)} b = Mul(x, k)"))
        roots = text.format(f"{constants(a=2.0)} c = Abs(x) b = Sqrt(c)")
        yield pair(f"a threshold of a root, {kind}", roots, text.format(f"{constants(a=4.0)} b = Abs(x)"))
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ l = Constant <value_float = -3.3> () h = Constant <value_float = 17.1> () {} }}"
    yield pair("clipped in two steps", text.format("y = Clip(x, l, h)"), text.format("a = Min(x, h) y = Max(a, l)"))
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ {} }}"
    spelled = "k = Constant <value_float = 6.0> () t = Constant <value_float = 3.0> () z = Constant <value_float = 0.0> () a = Add(x, t) c = Clip(a, z, k) m = Mul(x, c) y = Div(m, k)"
    yield pair("a hard swish", text.format("y = HardSwish(x)"), text.format(spelled))
    yield pair("a slope where it is more than 4", *(text.format(each) for each in (
        "y = ThresholdedRelu <alpha = 4.0> (x)",
        "t = Constant <value_float = 4.0> () z = Constant <value_float = 0.0> () c = Less(t, x) y = Where(c, x, z)",
    )))  # fmt: skip


def _whole() -> Iterator[Pair]:
    text = "g (int64[N] x) => (bool[N] y) {{ m = Constant <value_int = {}> () {} }}"
    for threshold in (37, 50256, -100277, 10**12):
        plain = text.format(threshold, "y = Greater(x, m)")
        yield pair(f"whole numbers from {threshold + 1} on", plain, text.format(threshold + 1, "y = GreaterOrEqual(x, m)"))
        yield pair(f"whole numbers above {threshold}", plain, text.format(threshold, "a = LessOrEqual(x, m) y = Not(a)"))
    text = "g (int64[N] i, float[N] e, float[50257, 1] t) => (float[N] y) {{ p = Constant <value_int = 50256> () r0 = Gather(t, i) u = Constant <value_ints = [1]> () r = Squeeze(r0, u) s = Add(r, e) {} }}"
    masked = "c = Equal(i, p) z = Constant <value_float = 0.0> () y = Where(c, z, s)"
    counted = "c = Less(i, p) d = Greater(i, p) o = Or(c, d) z = Constant <value_float = 0.0> () y = Where(o, s, z)"
    yield pair("a padding masked in two ways", text.format(masked), text.format(counted))
    text = "g (uint8[N, 4] x) => (float[N, 4] y) {{ k = Constant <value_float = 255.0> () h = Constant <value_float = 0.5> () f = Cast <to = 1> (x) {} c = Greater(d, h) y = Cast <to = 1> (c) }}"
    inverse = "i = Constant <value_float = 0.003921568627> () d = Mul(f, i)"
    yield pair("a bright pixel", text.format("d = Div(f, k)"), text.format(inverse))


def _rounded() -> Iterator[Pair]:
    for scale in (0.5, 0.1, 0.05, 2.0):
        text = f"g (float[N, 4] x) => (uint8[N, 4] y) {{{{ s = Constant <value_float = {scale}> () z = Constant <value = uint8 {{{{8}}}}> () {{}} }}}}"
        last = "r = Round(d) o = Constant <value_float = 8.0> () g = Add(r, o) l = Constant <value_float = 0.0> () h = Constant <value_float = 255.0> () c = Clip(g, l, h) y = Cast <to = 2> (c)"
        plain = text.format("y = QuantizeLinear(x, s, z)")
        yield pair(f"quantized by hand, {scale}", plain, text.format(f"d = Div(x, s) {last}"))
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ h = Constant <value_float = 2.0> () {} }}"
    yield pair("rounded and doubled", text.format("r = Round(x) y = Mul(r, h)"), text.format("r = Round(x) y = Add(r, r)"))


def _words() -> Iterator[Pair]:
    text = (
        _LOOKUP
        + " g (string[N] x) => (int64[N] y) {{ y = ai.onnx.ml.LabelEncoder <keys_strings = [{}], values_int64s = [{}]> (x) }}"
    )
    forms = ('"cat", "dog", "a"', "1, 2, 3"), ('"a", "dog", "cat"', "3, 2, 1")
    yield Pair("words in another order", *(model_from_text(text.format(*each)) for each in forms))
    text = 'g (string[N] x) => (bool[N] y) {{ e = Constant <value_string = "yes"> () {} }}'
    yield pair("a word from the other side", text.format("y = Equal(x, e)"), text.format("y = Equal(e, x)"), 19)
    text = 'g (string[N] x) => (bool[N] y) {{ y = RegexFullMatch <pattern = "{}"> (x) }}'
    yield pair("digits", text.format("[0-9]+"), text.format("[0-9][0-9]*"), 20)


def _zeros() -> Iterator[Pair]:
    text = "g (float[N, {}] x) => (float[N, 1] y) {{ a = Constant <value_ints = [1]> () {} y = Reciprocal(s) }}"
    for width in (2, 4, 7):
        ones = f"o = Constant <value = float[{width}, 1] {{{', '.join(['1.0'] * width)}}}> () s = MatMul(x, o)"
        yield pair(f"one over a sum of {width}", text.format(width, "s = ReduceSum(x, a)"), text.format(width, ones))
    text = "g (float[T, 4] x, float[4] h) => (float[4] y) {{ {} y = Reciprocal(s) }}"
    scan = "s = Scan <num_scan_inputs = 1, body = b (float[4] s0, float[4] e) => (float[4] n) { n = Add(s0, e) }> (h, x)"
    whole = "a = Constant <value_ints = [0]> () r = ReduceSum <keepdims = 0> (x, a) s = Add(r, h)"
    yield pair("one over a sum of steps", text.format(scan), text.format(whole))


def _steady() -> Iterator[Pair]:
    for factor in ("0.9", "0.99", "1.01"):
        text = f"""g (float[T, 4] x, float[4] h) => (float[4] y) {{{{ y = Scan <num_scan_inputs = 1,
          body = b (float[4] s, float[4] e) => (float[4] n) {{{{ k = Constant <value_float = {factor}> () {{}} }}}}> (h, x) }}}}"""
        turned = "i = Reciprocal(k) f = Mul(e, i) d = Add(s, f) n = Mul(d, k)"
        yield pair(f"a steady recurrence, {factor}", text.format("d = Mul(s, k) n = Add(d, e)"), text.format(turned))
    text = "g (float[T, B, 3] x, float[1, 8, 3] w, float[1, 8, 2] r) => (float[T, 1, B, 2] y, float[1, B, 2] h, float[1, B, 2] c) {{ {} }}"
    plain = "y, h, c = LSTM <hidden_size = 2> (x, w, r)"
    doubled = "k = Constant <value_float = 2.0> () v = Mul(w, k) i = Constant <value_float = 0.5> () u = Mul(x, i) y, h, c = LSTM <hidden_size = 2> (u, v, r)"
    yield pair("a steady LSTM", text.format(plain), text.format(doubled))


_AXIS = "a = Constant <value_ints = [{}]> ()"


def honest_by_roundings() -> list[Pair]:
    """All of them, in an order that does not change."""
    return [one for family in (_halves_inside, _sequences, _rounded_thresholds, _chaos) for one in family()]


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


def _rounded_thresholds() -> Iterator[Pair]:
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
