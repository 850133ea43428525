"""Pairs that are the same for all sizes, lengths of rows and trip counts, whichever branch is taken."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, pair
from tests.campaigns.verification_pairs.wrong_by_size import branch_pair

__all__ = ["harmless_sizes"]


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
