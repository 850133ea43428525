"""Pairs that differ for some sizes, lengths of rows or trip counts only, alone or beside others, and in one of two branches."""

from collections.abc import Iterator

from tests.campaigns.verification_pairs.pair import Pair, faulty, pair

__all__ = ["branch_pair", "size_of", "wrong_by_size"]

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
