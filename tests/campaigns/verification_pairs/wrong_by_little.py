"""Pairs that differ by little beside what else is there: other types, other elements, other items."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, pair
from tests.support.text import model_from_text

__all__ = ["wrong_by_little"]


def wrong_by_little() -> list[Pair]:
    """All of them, in an order that does not change."""
    return [one for family in (_scales, _own_types, _small_elements, _sequences, _thresholds) for one in family()]


def _scales() -> Iterator[Pair]:
    half = "h = Cast <to = 10> (x) z = Tanh(h)"
    for factor in ("1.005", "1.0001", "1.00001"):
        more = f"f = Constant <value = double {{{factor}}}> ()"
        interface = "(double[N, 4] x) => (double[N, 4] y, float16[N, 4] z)"
        yield pair(
            f"float64 beside float16, {factor}",
            f"g {interface} {{ {half} y = Sin(x) }}",
            f"g {interface} {{ {half} {more} s = Sin(x) y = Mul(s, f) }}",
        )
    for part, shape, axis in (
        ("column", "N, 4", 1),
        ("channel", "N, 4, 5", 1),
        ("row of five", "5, N", 0),
        ("last axis of three", "N, 3, 4", 2),
    ):
        count = {1: 4, 0: 5, 2: 4}[axis]
        for small in ("1e-2", "1e-3", "1e-5"):
            scale = ", ".join([small, *["1"] * (count - 1)])
            wrong = ", ".join([f"{float(small) * 1.01}", *["1"] * (count - 1)])
            lead = ", ".join(str(count) if at == axis else "1" for at in range(len(shape.split(","))))
            text = f"g (float[{shape}] x) => (float[{shape}] y) <float[{lead}] s = {{{{{{}}}}}}> {{{{ y = Mul(x, s) }}}}"
            yield pair(f"a small {part}, {small}", text.format(scale), text.format(wrong))
    for factor in ("1.001", "1.0005"):
        text = "g (float[N, 4] x) => (float[N, 4] y) {{ f = Constant <value_float = {}> () y = Mul(x, f) }}"
        yield pair(f"all too large, {factor}", text.format("1.0"), text.format(factor))


def _own_types() -> Iterator[Pair]:
    """A float64 output half a percent too large beside a float16 one that it has nothing to do with."""
    good, bad = (f"k = Constant <value = double {{{number}}}> ()" for number in ("1.0", "1.005"))
    interface = "(double[T, 4] x, double[4] h, bool c) => (double[T, 4] y, float16[T, 4] z)"
    half, steps = "q0 = Cast <to = 10> (e) q = Tanh(q0)", "num_scan_inputs = 1, body = b"
    texts = {
        "a Scan": f"y, z = Scan <{steps} (double[4] e) => (double[4] o, float16[4] q) {{ {half} {{}} s = Sin(e) o = Mul(s, k) }}> (x)",
        "a Scan's states": f"""h0 = Cast <to = 10> (h) l, m, y, z = Scan <{steps} (double[4] s, float16[4] u, double[4] e)
          => (double[4] n, float16[4] v, double[4] o, float16[4] r) {{ {half} v = Add(u, q) r = Identity(v)
          d = Add(s, e) n = Sin(d) {{}} o = Mul(n, k) }}> (h, h0, x)""",
        "an If": f"""y, z = If (c) <then_branch = t () => (double[T, 4] o, float16[T, 4] q) {{ e = Sin(x) {half} {{}} o = Mul(x, k) }},
          else_branch = f () => (double[T, 4] o2, float16[T, 4] q2) {{ q2 = Cast <to = 10> (x) o2 = Identity(x) }}>""",
        "a Loop": """n = Constant <value_int = 2> () x0 = Cast <to = 10> (x) y, z = Loop (n, , x, x0) <
          body = b (int64 i, bool p, double[T, 4] e, float16[T, 4] w) => (bool p2, double[T, 4] o, float16[T, 4] q) {
          p2 = Identity(p) q = Tanh(w) {} s = Sin(e) o = Mul(s, k) }>""",
    }
    for name, text in texts.items():
        whole = f"g {interface} {{ {text} }}"
        yield pair(f"float64 beside float16 in {name}", *(whole.replace("{}", each) for each in (good, bad)))
    header = '<ir_version: 10, opset_import: ["": 18, "half": 1]>'
    function = """<domain: "half", opset_import: ["": 18]> f <to> (x) => (v, w) {
      h = Cast <to: int = @to> (x) v = Tanh(h) w = Neg(x) }"""
    texts = [
        f"{header} g {interface} {{ z, w = half.f <to = 10> (x) s = Sin(w) {each} y = Mul(s, k) }} {function}"
        for each in (good, bad)
    ]
    yield Pair("float64 beside float16 in a function", *(model_from_text(text) for text in texts))


def _small_elements() -> Iterator[Pair]:
    """A small element beside large ones, where there is one row by declaration."""
    for shape, others in (("1, 4", "1000, 1, 1"), ("4", "1000, 1, 1"), ("1, 2", "1"), ("1, 1, 3", "1, 1")):
        for small in ("1e-3", "1e-5"):
            numbers = [f"{others}, {float(small) * factor}" for factor in (1.0, 2.0)]
            text = f"g (float[{shape}] x) => (float[{shape}] y) <float[{len(others.split(',')) + 1}] s = {{{{{{}}}}}}> {{{{ y = Mul(x, s) }}}}"
            yield pair(f"a small element of {shape} doubled, {small}", *(text.format(each) for each in numbers))


def _sequences() -> Iterator[Pair]:
    text = "g (float[N, 8] x) => (seq(float[N, 8]) y) {{ k = Constant <value_float = {}> () s = Sin(x) z = Mul(s, k) y = SequenceConstruct(x, z) }}"
    yield pair("an item of a sequence too large", text.format("1.0"), text.format("1.001"))
    yield pair("items of a sequence exchanged", text.format("1.0"), text.format("1.0").replace("(x, z)", "(z, x)"))


def _thresholds() -> Iterator[Pair]:
    """Thresholds of sums that are exact for whole and half numbers."""
    text = "g (float[N, 4] x) => (float[N, 1] y) <float[4, 1] w = {{1.0, 0.5, -2.0, 4.0}}> {{ m = MatMul(x, w) {} }}"
    low = "e = Constant <value_float = 1e-6> () d = Sub(m, e) y = Floor(d)"
    yield pair("the floor of an exact sum", text.format("y = Floor(m)"), text.format(low))
    zero, last = "z = Constant <value_float = 0.0> ()", "y = Cast <to = 1> (c)"
    forms = (f"{zero} c = {operator}(m, z) {last}" for operator in ("Less", "LessOrEqual"))
    yield pair("an exact sum at zero", *(text.format(form) for form in forms))
