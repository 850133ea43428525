"""Pairs that compute the same and look odd, for their operators or their sizes."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, pair
from tests.campaigns.verification_pairs.wrong_by_size import branch_pair

__all__ = ["harmless_pairs", "harmless_sizes"]


_NUMBERS = {"float": 1, "double": 11}


def harmless_pairs() -> Iterator[Pair]:
    """All of them, in an order that does not change."""
    for family in (_divisors, _indices, _integers, _sequences):
        yield from family()


def _divisors() -> Iterator[Pair]:
    for kind, number in _NUMBERS.items():
        two = f"g ({kind}[N, 4] a, {kind}[N, 4] b) => ({kind}[N, 4] y) {{{{ {{}} }}}}"
        plain = two.format("y = Div(a, b)")
        yield pair(f"a division, {kind}", plain, two.format("r = Reciprocal(b) y = Mul(a, r)"))
        yield pair(f"a division of negated ones, {kind}", plain, two.format("m = Neg(a) n = Neg(b) y = Div(m, n)"))
        yield pair(
            f"a division of doubled ones, {kind}",
            two.format("s = Add(a, a) y = Div(s, b)"),
            two.format("q = Div(a, b) y = Add(q, q)"),
        )
        one = f"g ({kind}[N, 6] x) => ({kind}[N, 6] y) {{{{ ax = Constant <value_ints = [1]> () b = Abs(x) s = ReduceSum(b, ax) {{}} }}}}"
        yield pair(f"a norm, {kind}", one.format("y = Div(x, s)"), one.format("r = Reciprocal(s) y = Mul(x, r)"))
        softsign = f"g ({kind}[N, 4] x) => ({kind}[N, 4] y) {{{{ b = Abs(x) {{}} }}}}"
        spelled = f"o0 = Constant <value = double {{{{1.0}}}}> () o = Cast <to = {number}> (o0) d = Add(o, b) y = Div(x, d)"
        if kind == "float":
            yield pair("softsign spelled out", softsign.format("y = Softsign(x)"), softsign.format(spelled.format()))
        mean = f"g ({kind}[N, 4] x, {kind}[N, 4] m) => ({kind}[N] y) {{{{ ax = Constant <value_ints = [1]> () d = ReduceSum <keepdims = 0> (m, ax) {{}} }}}}"
        yield pair(
            f"a masked mean, {kind}",
            mean.format("p = Mul(x, m) n = ReduceSum <keepdims = 0> (p, ax) y = Div(n, d)"),
            mean.format('n = Einsum <equation = "ij,ij->i"> (m, x) r = Reciprocal(d) y = Mul(r, n)'),
        )


def _indices() -> Iterator[Pair]:
    text = "g (float[8, 3] x, int64[N] i) => (float[N, 3] y) {{ {} }}"
    turned = "e = Constant <value_int = 8> () z = Constant <value_int = 0> () c = Less(i, z) p = Add(i, e) j = Where(c, p, i) y = Gather(x, j)"
    yield pair("indices counted from the start", text.format("y = Gather(x, i)"), text.format(turned))
    text = "g (float[T, 3] x, int64[1] s, int64[1] e) => (float[A, 3] y) {{ z = Constant <value_ints = [0]> () {} }}"
    yield pair(
        "a cut in two ways",
        text.format("y = Slice(x, s, e, z)"),
        text.format("t = Transpose(x) o = Constant <value_ints = [1]> () u = Slice(t, s, e, o) y = Transpose(u)"),
    )
    text = "g (float[T, 4] x, int64 ax) => (float[T, 4] y) {{ {} }}"
    yield pair(
        "a running sum turned round", text.format("y = CumSum(x, ax)"), text.format("m = Neg(x) u = CumSum(m, ax) y = Neg(u)")
    )
    text = "g (int64[N] a, int64[1] m) => (int64[N] y) {{ {} }}"
    yield pair("a remainder", text.format("y = Mod <fmod = 1> (a, m)"), text.format("q = Div(a, m) p = Mul(q, m) y = Sub(a, p)"))


def _integers() -> Iterator[Pair]:
    for kind in ("int64", "int32", "uint8", "int8"):
        text = f"g ({kind}[T, 4] a) => ({kind}[T, 4] y) {{{{ {{}} }}}}"
        compared = "c = Less(a, a) d = Not(c) y = Where(d, a, a)"
        yield pair(f"{kind} compared", text.format("y = Max(a, a)"), text.format(compared), 21)
    text = "g (int64[T, 4] a, int64[4] h) => (int64[T, 4] y) { %s }"
    scan = "l, y = Scan <num_scan_inputs = 1, body = b (int64[4] s, int64[4] e) => (int64[4] n, int64[4] o) { n = Add(s, e) o = Identity(n) }> (h, a)"
    whole = "z = Constant <value_int = 0> () t = CumSum(a, z) y = Add(t, h)"
    yield pair("a scan that overflows", text % scan, text % whole)


def _sequences() -> Iterator[Pair]:
    text = "g (seq(float[N]) s) => (int64 y) {{ {} }}"
    yield pair(
        "a length, and one of one more",
        text.format("y = SequenceLength(s)"),
        text.format(
            "v = Constant <value_floats = [1.0]> () t = SequenceInsert(s, v) n = SequenceLength(t) o = Constant <value_int = 1> () y = Sub(n, o)"
        ),
    )
    text = "g (optional(float[N]) o) => (bool y) {{ h = OptionalHasElement(o) {} }}"
    yield pair("an optional, asked twice", text.format("y = Identity(h)"), text.format("n = Not(h) y = Not(n)"))


def harmless_sizes() -> Iterator[Pair]:
    """All of them, in an order that does not change."""
    for family in (_many_sizes, _rows, _trips, _branches):
        yield from family()


def _many_sizes() -> Iterator[Pair]:
    names = "abcdefgij"
    declared = ", ".join(f"float[S{name}, 1] {name}" for name in names)
    sums = " ".join(f"r{name} = ReduceSum <keepdims = 0> ({name})" for name in names)
    text = f"g ({declared}) => (float y) {{{{ {{}} }}}}"
    yield pair(
        "sums over nine sizes",
        text.format(f"{sums} y = Sum({', '.join(f'r{name}' for name in names)})"),
        text.format(f"w = Concat <axis = 0> ({', '.join(names)}) y = ReduceSum <keepdims = 0> (w)"),
    )
    text = "g (float[A, B, C, D] x) => (float[D, C, B, A] y) {{ {} }}"
    yield pair(
        "axes exchanged at once and in turn",
        text.format("y = Transpose <perm = [3, 2, 1, 0]> (x)"),
        text.format("p = Transpose <perm = [0, 1, 3, 2]> (x) q = Transpose <perm = [1, 0, 2, 3]> (p) y = Transpose <perm = [2, 3, 0, 1]> (q)"),
    )  # fmt: skip


def _rows() -> Iterator[Pair]:
    """Rows in the other order; rows of length 0 give zeros, whatever the initial state."""
    turned = """m = Constant <value_ints = [-1]> () e = Constant <value_ints = [-9223372036854775807]> ()
      b0 = Constant <value_ints = [0]> () b1 = Constant <value_ints = [1]> () b2 = Constant <value_ints = [2]> ()
      u = Slice(x, m, e, b1, m) k = Slice(l, m, e, b0, m) i = Slice(h, m, e, b1, m)"""
    for kind, gates, more in (("LSTM", 4, ", y3"), ("GRU", 3, ""), ("RNN", 1, "")):
        text = f"""g (float[T, B, 3] x, int32[B] l, float[1, {2 * gates}, 3] w, float[1, {2 * gates}, 2] r, float[1, B, 2] h) =>
          (float[T, 1, B, 2] y, float[1, B, 2] z) {{{{ {{}} }}}}"""
        plain = f"y, z{more} = {kind} <hidden_size = 2> (x, w, r, , l, h)"
        last = "y = Slice(v, m, e, b2, m) z = Slice(f, m, e, b1, m)"
        yield pair(
            f"rows of {kind} in the other order",
            text.format(plain),
            text.format(f"{turned} v, f{more} = {kind} <hidden_size = 2> (u, w, r, , k, i) {last}"),
        )


def _trips() -> Iterator[Pair]:
    body = "<body = b{0} (int64 i{0}, bool q{0}, int64 s{0}) => (bool c{0}, int64 r{0}) {{ c{0} = Identity(q{0}) r{0} = Add(s{0}, s{0}) }}>"
    text = "g (int64 n, int64 m, int64 h) => (int64 y) {{ t = Constant <value = bool {{1}}> () {} }}"
    one, other = body.format(1), body.format(2)
    yield pair(
        "two loops, the second first",
        text.format(f"p = Loop (n, t, h) {one} y = Loop (m, t, p) {other}"),
        text.format(f"p = Loop (m, t, h) {one} y = Loop (n, t, p) {other}"),
    )


def _branches() -> Iterator[Pair]:
    turned = "v = Transpose(w) u = Transpose(x) p = MatMul(v, u) o = Transpose(p)"
    minus = "z = Constant <value_float = 0.0> () o2 = Sub(z, x)"
    for name, condition in (
        ("as sizes are equal", "c = Equal(k, l)"),
        ("always", "n0 = Constant <value_int = 0> () c = GreaterOrEqual(k, n0)"),
        ("of some rows", "n0 = Constant <value_int = 2> () c = Greater(t, n0)"),
        ("of sizes that are no more", "c = GreaterOrEqual(k, l)"),
    ):
        yield branch_pair(f"a branch that multiplies, {name}", condition, ("o = MatMul(x, w)", "o2 = Neg(x)"), (turned, minus))
    joined, added = "o = Concat <axis = 0> (x, w)", "o2 = Add(x, w)"
    yield branch_pair(
        "branches that join and add",
        "c = Equal(k, m)",
        (joined, added),
        ("a = Transpose(x) b = Transpose(w) v = Concat <axis = 1> (a, b) o = Transpose(v)", "o2 = Add(w, x)"),
    )
