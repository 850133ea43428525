"""Pairs that are the same, at the values that they name for their inputs too, or up to roundings there."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, pair
from tests.support.text import model_from_text

__all__ = ["honest_at_named_values"]

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
