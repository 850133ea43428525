"""Pairs that differ at some sizes only, or by little."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, faulty, pair
from tests.support.text import model_from_text

__all__ = ["branch_pair", "size_of", "wrong_by_little", "wrong_by_size"]


_SIX = "a b c1 d1 e1 g1"
_THREE = "a b c1"


def wrong_by_size() -> Iterator[Pair]:
    """All of them, in an order that does not change."""
    for family in (_one_size, _six_sizes, _three_sizes, _rows, _trips, _branches):
        yield from family()


def size_of(name: str, of: str, axis: int = 0) -> str:
    """Nodes that compute a size, as a scalar."""
    cut = f"q{name} = Shape <start = {axis}, end = {axis + 1}> ({of}) p{name} = Constant <value_ints = [0]> ()"
    return f"{cut} {name} = Squeeze(q{name}, p{name})"


def _int(name: str, value: int) -> str:
    return f"{name} = Constant <value_int = {value}> ()"


def _sum(names: str, more: str = "") -> tuple[str, str, str]:
    """The interface and nodes of a sum over vectors, each of a size of its own, and nodes that compute the sizes: ``na`` of ``a``."""
    each = names.split()
    interface = f"({', '.join(f'float[S{name}, 1] {name}' for name in each)}{more}) => (float y)"
    sums = " ".join(f"r{name} = ReduceSum <keepdims = 0> ({name})" for name in each)
    return (
        interface,
        f"{sums} y0 = Sum({', '.join(f'r{name}' for name in each)})",
        " ".join(size_of(f"n{name}", name) for name in each),
    )


def _one_size() -> Iterator[Pair]:
    core, interface = "y0 = ReduceSum <keepdims = 0> (x)", "(float[N] x) => (float y)"
    for name, least, most in (("6", 5, 7), ("from 9 to 15", 8, 16), ("above 256", 256, 10**9)):
        condition = f"{size_of('n', 'x')} {_int('l', least)} {_int('m', most)} c2 = Greater(n, l) c3 = Less(n, m) c = And(c2, c3)"
        yield faulty(f"a size {name}", interface, core, condition)
    one = faulty(
        "a size of 1000", interface, core, f"{size_of('n', 'x')} {_int('l', 999)} {_int('m', 1001)} c2 = Greater(n, l) c3 = Less(n, m) c = And(c2, c3)"
    )  # fmt: skip
    yield Pair(one.name, one.before, one.after, untried="other sizes of 'N'")


def _six_sizes() -> Iterator[Pair]:
    interface, core, sizes = _sum(_SIX)
    numbers = " ".join((_int("z0", 0), _int("z1", 1), _int("z100", 100), _int("z256", 256)))
    for place, name in ((0, "first"), (4, "fifth"), (5, "sixth")):
        one, *others = [
            f"n{each}" for each in (_SIX.split()[place], *(each for each in _SIX.split() if each != _SIX.split()[place]))
        ]
        least, most = f"l = Min({', '.join(others)})", f"m = Max({', '.join(others)})"
        for what, condition in (
            ("0 alone", f"{least} c2 = Equal({one}, z0) c3 = Greater(l, z0)"),
            ("0 beside 1s", f"{most} {least} c4 = Equal(m, l) c5 = Equal(m, z1) c2 = And(c4, c5) c3 = Equal({one}, z0)"),
            ("above 256 beside 1s", f"{most} c2 = Greater({one}, z256) c3 = Equal(m, z1)"),
            ("above 100 beside others above 1", f"{least} c2 = Greater({one}, z100) c3 = Greater(l, z1)"),
            ("1 beside others above 1", f"{least} c2 = Equal({one}, z1) c3 = Greater(l, z1)"),
            ("not 0 beside 0s", f"{most} c2 = Equal(m, z0) c3 = Greater({one}, z0)"),
        ):
            yield faulty(f"the {name} of six sizes {what}", interface, core, f"{sizes} {numbers} {condition} c = And(c2, c3)")


def _three_sizes() -> Iterator[Pair]:
    interface, core, sizes = _sum(_THREE)
    names = [f"n{name}" for name in _THREE.split()]
    for last in names:
        one, other = (name for name in names if name != last)
        for what, condition in (
            ("equal", f"{_int('lim', 1)} c2 = Equal({one}, {other}) c4 = Equal({one}, {last}) c5 = Not(c4) c6 = Greater({one}, lim) c3 = And(c5, c6)"),
            ("0", f"{_int('lim', 0)} m = Max({one}, {other}) c2 = Equal(m, lim) c3 = Greater({last}, lim)"),
            ("1", f"{_int('lim', 1)} {_int('k9', 9)} m = Max({one}, {other}) c2 = Equal(m, lim) c4 = Greater({last}, lim) c5 = Less({last}, k9) c3 = And(c4, c5)"),
        ):  # fmt: skip
            yield faulty(f"two of three sizes {what}, {last} not", interface, core, f"{sizes} {condition} c = And(c2, c3)")


def _rows() -> Iterator[Pair]:
    nodes = {
        "LSTM": ("float[1, 8, 3] w, float[1, 8, 2] r", "y1, y2, y3 = LSTM <hidden_size = 2> (x, w, r, , l)"),
        "GRU": ("float[1, 6, 3] w, float[1, 6, 2] r", "y1, y2 = GRU <hidden_size = 2> (x, w, r, , l)"),
        "RNN": ("float[1, 2, 3] w, float[1, 2, 2] r", "y1, y2 = RNN <hidden_size = 2> (x, w, r, , l)"),
    }
    least_and_most = "mi = ReduceMin <keepdims = 0> (i) ma = ReduceMax <keepdims = 0> (i)"
    several = f"{size_of('b', 'x', 1)} {_int('lim', 1)} c3 = Greater(b, lim)"
    conditions = {
        "no row with a step": f"c2 = Equal(ma, o) {several}",
        "no step in the first row": f"{_int('p', 0)} e = Gather(i, p) c2 = Equal(e, o) c3 = Greater(ma, o)",
        "no step in the last row": f"{_int('p', -1)} e = Gather(i, p) c2 = Equal(e, o) c3 = Greater(ma, o)",
        "all steps in all rows": f"{several} {size_of('t', 'x', 0)} c4 = Equal(mi, t) c5 = Greater(t, lim) c2 = And(c4, c5)",
        "all steps in no row": f"{size_of('t', 'x', 0)} c2 = Less(ma, t) c3 = Greater(mi, o)",
    }
    for name, condition in conditions.items():
        for kind, (weights, node) in nodes.items():
            core = f"{node} a = Constant <value_ints = [0]> () y0 = Squeeze(y2, a)"
            interface = f"(float[T, B, 3] x, int32[B] l, {weights}) => (float[B, 2] y)"
            fault = f"i = Cast <to = 7> (l) {_int('o', 0)} {least_and_most} {condition} c = And(c2, c3)"
            yield faulty(f"{kind}, {name}", interface, core, fault, 0.1)


def _trips() -> Iterator[Pair]:
    core = """t = Constant <value = bool {1}> ()
      y1 = Loop (n, t, h) <body = b (int64 i, bool q, float[3] s) => (bool q2, float[3] r) { q2 = Identity(q) r = Sin(s) }>
      y0 = Loop (m, t, y1) <body = b2 (int64 i2, bool q3, float[3] s2) => (bool q4, float[3] r2) { q4 = Identity(q3) r2 = Cos(s2) }>"""
    for name, condition in (
        ("both below 0", "c2 = Less(n, o) c3 = Less(m, o)"),
        ("both 0", "c2 = Equal(n, o) c3 = Equal(m, o)"),
        ("the second of 6", f"{_int('lim', 6)} c2 = Equal(m, lim) c3 = Greater(n, o)"),
    ):
        interface = "(int64 n, int64 m, float[3] h) => (float[3] y)"
        yield faulty(f"trip counts, {name}", interface, core, f"{_int('o', 0)} {condition} c = And(c2, c3)")


def branch_pair(name: str, condition: str, before: tuple[str, str], after: tuple[str, str]) -> Pair:
    """A pair of Ifs by what the two branches compute of ``x`` [T, K] and ``w`` [L, M]; ``condition`` reads ``t``, ``k``, ``l``, ``m``."""
    sizes = " ".join(size_of(name, of, axis) for name, of, axis in (("t", "x", 0), ("k", "x", 1), ("l", "w", 0), ("m", "w", 1)))
    text = """g (float[T, K] x, float[L, M] w) => (float[U, V] y) {{ {} {} y = If (c) <
      then_branch = t () => (float[P, P2] o) {{ {} }}, else_branch = f () => (float[Q, Q2] o2) {{ {} }}> }}"""
    return pair(name, *(text.format(sizes, condition, *branches) for branches in (before, after)))


def _branches() -> Iterator[Pair]:
    same, negated = "o2 = Identity(x)", "o2 = Neg(x)"
    alike = "c2 = Equal(t, l) c3 = Equal(k, m) c = And(c2, c3)"
    weight = "n = Constant <value_ints = [5, 2]> () d = ConstantOfShape <value = float[1] {1.0}> (n)"
    for name, condition, taken in (
        ("multiplies", "c = Equal(k, l)", "o = MatMul(x, w)"),
        ("has a Gemm", "c = Equal(k, l)", "o = Gemm(x, w)"),
        ("sums products", "c = Equal(k, l)", 'o = Einsum <equation = "tk,km->tm"> (x, w)'),
        ("joins", "c = Equal(k, m)", "o = Concat <axis = 0> (x, w)"),
        ("adds", alike, "o = Add(x, w)"),
        ("multiplies by weights", f"{_int('five', 5)} c = Equal(k, five)", f"{weight} o = MatMul(x, d)"),
    ):
        yield branch_pair(f"sizes unlike where a branch {name}", condition, (taken, same), (taken, negated))
    apart = f"{_int('z', 1)} least = Min(t, k, l, m) c2 = Greater(least, z) c3 = Equal(k, m) c4 = Not(c3) c = And(c2, c4)"
    added = "o2 = Add(x, w)"
    yield branch_pair("sizes above 1 unlike where a branch adds", apart, ("o = Identity(x)", added), ("o = Neg(x)", added))
    empty = f"{_int('z', 0)} c2 = Equal(k, z) c3 = Greater(l, z) c = And(c2, c3)"
    multiplied = "o2 = MatMul(x, w)"
    shape = "s = Shape(x) f = Cast <to = 1> (s) v = Constant <value_ints = [0]> () u = Unsqueeze(f, v)"
    yield branch_pair(
        "no size beside one where a branch multiplies",
        empty,
        (f"{shape} o = Identity(u)", multiplied),
        (f"{shape} o = Neg(u)", multiplied),
    )


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
