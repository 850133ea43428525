"""Pairs of models that do not compute the same, each for a reason of its own."""

from collections.abc import Iterator

import numpy as np

from tests.campaigns.verification_pairs.named import wrong_at_named_values
from tests.campaigns.verification_pairs.pair import Pair, faulty, pair, with_weights
from tests.campaigns.verification_pairs.unusual import unusual_pairs
from tests.campaigns.verification_pairs.wrong_by_size import wrong_by_little, wrong_by_size
from tests.support.text import model_from_text

__all__ = ["wrong_pairs"]

_SUM = "a = Constant <value_ints = [0]> () y0 = ReduceSum <keepdims = 0> (x, a)"
_STEPS = "(float[T, B, 4] x) => (float[B, 4] y)"
_TRIPS = "(int64 n, float[3] h) => (float[3] y)"
_COUNT = """t = Constant <value = bool {1}> ()
  y0 = Loop (n, t, h) <body = b (int64 i, bool q, float[3] s) => (bool q2, float[3] r) { q2 = Identity(q) r = Sin(s) }>"""


def wrong_pairs() -> list[Pair]:
    """All of them, in an order that does not change."""
    families = (_sizes, _two_sizes, _trips, _values, _integers, _masks, _lengths, _orders, _weights, _ties, _others)
    return [
        *(one for family in families for one in family()),
        *wrong_by_little(),
        *unusual_pairs(),
        *wrong_by_size(),
        *wrong_at_named_values(),
    ]


def _dim(axis: int, name: str, of: str = "x") -> str:
    zero = f"z{name} = Constant <value_ints = [0]> ()"
    return f"s{name} = Shape <start = {axis}, end = {axis + 1}> ({of}) {zero} {name} = Squeeze(s{name}, z{name})"


def _int(name: str, value: int) -> str:
    return f"{name} = Constant <value_int = {value}> ()"


def _sizes() -> Iterator[Pair]:
    for axis, letter, sizes in ((0, "T", (0, 1, 2, 3, 4, 5, 7, 8, 16, 33, 131)), (1, "B", (1, 2, 3, 4, 5, 7, 8, 16, 61, 137))):
        for size in sizes:
            yield faulty(f"{letter} is {size}", _STEPS, _SUM, f"{_dim(axis, 'd')} {_int('m', size)} c = Equal(d, m)")
        for size in (16, 33, 61, 128):
            yield faulty(f"{letter} above {size}", _STEPS, _SUM, f"{_dim(axis, 'd')} {_int('m', size)} c = Greater(d, m)")
        for rest in (0, 1):
            condition = f"{_dim(axis, 'd')} {_int('two', 2)} e = Mod(d, two) {_int('m', rest)} c = Equal(e, m)"
            yield faulty(f"{letter} {('even', 'odd')[rest]}", _STEPS, _SUM, condition, 0.01)


def _two_sizes() -> Iterator[Pair]:
    both = f"{_dim(0, 'd')} {_dim(1, 'e')} {_int('one', 1)}"
    conditions = {
        "T is B": "c = Equal(d, e)",
        "T below B": "c = Less(d, e)",
        "T above B": "c = Greater(d, e)",
        "T is B above 1": "c1 = Equal(d, e) c2 = Greater(d, one) c = And(c1, c2)",
        "T and B are 1": "c1 = Equal(d, one) c2 = Equal(e, one) c = And(c1, c2)",
        "T is 1, B is not": "c1 = Equal(d, one) c2 = Greater(e, one) c = And(c1, c2)",
        "B is 1, T is not": "c1 = Equal(e, one) c2 = Greater(d, one) c = And(c1, c2)",
        "T is a multiple of B": "r = Mod(d, e) z = Sub(one, one) c1 = Equal(r, z) c2 = Greater(e, one) c = And(c1, c2)",
    }
    for name, condition in conditions.items():
        yield faulty(name, _STEPS, _SUM, f"{both} {condition}")


def _trips() -> Iterator[Pair]:
    for count in (-1, 0, 1, 2, 3, 4, 5, 7, 8, 17, 131):
        yield faulty(f"{count} trips", _TRIPS, _COUNT, f"{_int('m', count)} c = Equal(n, m)", 0.01)
    for count in (16, 128):
        yield faulty(f"above {count} trips", _TRIPS, _COUNT, f"{_int('m', count)} c = Greater(n, m)", 0.01)


def _values() -> Iterator[Pair]:
    def value(name: str, number: str) -> str:
        return f"{name} = Constant <value_float = {number}> ()"

    conditions = {
        "above 5": f"{value('m', '5.0')} c = Greater(x, m)",
        "below -5": f"{value('m', '-5.0')} c = Less(x, m)",
        "above 100": f"{value('m', '100.0')} c = Greater(x, m)",
        "below -100": f"{value('m', '-100.0')} c = Less(x, m)",
        "above 500": f"{value('m', '500.0')} c = Greater(x, m)",
        "zero": f"{value('m', '0.0')} c = Equal(x, m)",
        "one": f"{value('m', '1.0')} c = Equal(x, m)",
        "minus a half": f"{value('m', '-0.5')} c = Equal(x, m)",
        "infinite": "c = IsInf(x)",
        "minus infinity": "c = IsInf <detect_positive = 0> (x)",
        "an integer": "r = Floor(x) c = Equal(r, x)",
    }
    for name, condition in conditions.items():
        yield faulty(f"x {name}", "(float[N, 4] x) => (float[N, 4] y)", "y0 = Tanh(x)", condition)
    for bound in ("1e-3", "1e-5", "1e-6"):
        before = "g (float[N, 4] x) => (float[N, 4] y) { y = Identity(x) }"
        condition = f"a = Abs(x) {value('m', bound)} c = Less(a, m) z = Sub(x, x) y = Where(c, z, x)"
        yield pair(f"x tiny, {bound}", before, f"g (float[N, 4] x) => (float[N, 4] y) {{ {condition} }}")
    where_nan = "c = IsNaN(x) z = Constant <value_float = 0.0> () y = Where(c, z, x)"
    yield pair(
        "x NaN",
        "g (float[N, 4] x) => (float[N, 4] y) { y = Identity(x) }",
        f"g (float[N, 4] x) => (float[N, 4] y) {{ {where_nan} }}",
    )
    every = "a = Abs(x) m = ReduceMax <keepdims = 0> (a) z = Constant <value_float = 0.0> () c = Equal(m, z)"
    yield faulty("all of x zero", "(float[N, 4] x) => (float[N, 4] y)", "y0 = Tanh(x)", every)
    row = "a = Abs(x) l = Constant <value_ints = [1]> () m = ReduceMax <keepdims = 1> (a, l) z = Sub(m, m) c = Equal(m, z)"
    yield faulty("a row of x zero", "(float[N, 4] x) => (float[N, 4] y)", "y0 = Tanh(x)", row)
    identity = "g (float[N, 4] x) => (float[N, 4] y) { y = Identity(x) }"
    for name, low, high in (
        ("clipped at 100", "-100.0", "100.0"),
        ("clipped at 800", "-800.0", "800.0"),
        ("clipped at 6", "-6.0", "6.0"),
    ):
        clip = f"{value('l', low)} {value('h', high)} y = Clip(x, l, h)"
        yield pair(name, identity, f"g (float[N, 4] x) => (float[N, 4] y) {{ {clip} }}")
    halves = "h = Cast <to = 10> (x) y = Cast <to = 1> (h)"
    yield pair("through float16", identity, f"g (float[N, 4] x) => (float[N, 4] y) {{ {halves} }}")


def _integers() -> Iterator[Pair]:
    for name, bound in (("2**31", 1 << 31), ("2**33", 1 << 33), ("2**53", 1 << 53), ("5", 5)):
        for operator in ("Greater", "Less"):
            limit = bound if operator == "Greater" else -bound
            body = f"m = Constant <value_int = {limit}> () c = {operator}(a, m) d = Cast <to = 7> (c) y = Add(a, d)"
            sign = "above" if operator == "Greater" else "below -"
            same = "g (int64[N] a) => (int64[N] y) { y = Identity(a) }"
            if limit != -5:
                yield pair(f"int64 {sign} {name}", same, f"g (int64[N] a) => (int64[N] y) {{ {body} }}")
    for kind, middle in (
        ("int64", 1),
        ("int64", 11),
        ("int64", 6),
        ("int32", 1),
        ("int32", 5),
        ("uint64", 11),
        ("int16", 3),
        ("uint16", 10),
    ):
        number = {"int64": 7, "int32": 6, "uint64": 13, "int16": 5, "uint16": 4}[kind]
        through = f"m = Cast <to = {middle}> (a) y = Cast <to = {number}> (m)"
        same = f"g ({kind}[N] a) => ({kind}[N] y) {{ y = Identity(a) }}"
        yield pair(f"{kind} through type {middle}", same, f"g ({kind}[N] a) => ({kind}[N] y) {{ {through} }}")
    text = "g (int64[N] a) => (int64[N] y) {{ m = Constant <value_int = 4> () y = {} }}"
    yield pair("the sign of Mod", text.format("Mod(a, m)"), text.format("Mod <fmod = 1> (a, m)"))
    yield pair("int64 negative", text.format("Abs(a)"), text.format("Identity(a)"))
    floor = "f = Cast <to = 1> (a) g = Cast <to = 1> (m) d = Div(f, g) e = Floor(d) y = Cast <to = 7> (e)"
    yield pair("the rounding of Div", text.format("Div(a, m)"), text.format("Identity(a)").replace("y = Identity(a)", floor))


def _masks() -> Iterator[Pair]:
    interface, core = "(bool[N] m, float[N] x) => (float[N] y)", "y0 = Where(m, x, x)"
    conditions = {
        "all true": "i = Cast <to = 6> (m) r = ReduceMin <keepdims = 0> (i) c = Cast <to = 9> (r)",
        "all false": "i = Cast <to = 6> (m) r = ReduceMax <keepdims = 0> (i) c1 = Cast <to = 9> (r) c = Not(c1)",
        "one is true": "i = Cast <to = 6> (m) r = ReduceMax <keepdims = 0> (i) c = Cast <to = 9> (r)",
    }
    for name, condition in conditions.items():
        yield faulty(f"mask {name}", interface, core, condition, 0.01)


def _lengths() -> Iterator[Pair]:
    weights = {
        "LSTM": ("float[1, 8, 3] w, float[1, 8, 2] r", "y1, y2, y3 = LSTM <hidden_size = 2> (x, w, r, , l)"),
        "GRU": ("float[1, 6, 3] w, float[1, 6, 2] r", "y1, y2 = GRU <hidden_size = 2> (x, w, r, , l)"),
        "RNN": ("float[1, 2, 3] w, float[1, 2, 2] r", "y1, y2 = RNN <hidden_size = 2> (x, w, r, , l)"),
    }
    conditions = {
        "0": "i0 = Cast <to = 7> (l) zero = Constant <value_int = 0> () e = Equal(i0, zero)",
        "1": "i0 = Cast <to = 7> (l) zero = Constant <value_int = 1> () e = Equal(i0, zero)",
        "T": f"i0 = Cast <to = 7> (l) {_dim(0, 'd')} e = Equal(i0, d)",
        "below T": f"i0 = Cast <to = 7> (l) {_dim(0, 'd')} e = Less(i0, d)",
    }
    for kind, (declared, node) in weights.items():
        core = f"{node} q = Constant <value_ints = [0]> () y0 = Squeeze(y2, q)"
        interface = f"(float[T, B, 3] x, int32[B] l, {declared}) => (float[B, 2] y)"
        for name, condition in conditions.items():
            fault = f"{condition} u = Constant <value_ints = [1]> () c = Unsqueeze(e, u)"
            yield faulty(f"{kind} length {name}", interface, core, fault, 0.1)
    core = "y1, y2 = GRU <hidden_size = 2> (x, w, r, , l) q = Constant <value_ints = [0]> () y0 = Squeeze(y2, q)"
    mixed = """zero = Constant <value = int32 {0}> () mi = ReduceMin <keepdims = 0> (l) ma = ReduceMax <keepdims = 0> (l)
      c1 = Equal(mi, zero) c2 = Greater(ma, zero) c = And(c1, c2)"""
    yield faulty(
        "lengths of 0 beside others", f"(float[T, B, 3] x, int32[B] l, {weights['GRU'][0]}) => (float[B, 2] y)", core, mixed, 0.1
    )


def _orders() -> Iterator[Pair]:
    for size in (2, 3, 5, 8, 16):
        flip = f"{_dim(1, 'd')} {_int('m', size)} c = Equal(d, m)"
        swap = """b0 = Constant <value_ints = [-1]> () e0 = Constant <value_ints = [-9223372036854775807]> ()
          ax = Constant <value_ints = [1]> () turned = Slice(x, b0, e0, ax, b0) y = Where(c, turned, x)"""
        interface = "(float[T, B, 4] x) => (float[T, B, 4] y)"
        yield pair(f"rows swapped at B of {size}", f"g {interface} {{ y = Identity(x) }}", f"g {interface} {{ {flip} {swap} }}")
        steps = flip.replace("<start = 1, end = 2>", "<start = 0, end = 1>")
        turn = swap.replace("value_ints = [1]", "value_ints = [0]")
        yield pair(f"steps reversed at T of {size}", f"g {interface} {{ y = Identity(x) }}", f"g {interface} {{ {steps} {turn} }}")


def _weights() -> Iterator[Pair]:
    text = "g (float[N, 3] x, float[3, 3] w) => (float[N, 3] y) {{ {} }}"
    good, bad = text.format("y = MatMul(x, w)"), text.format("v = Transpose <perm = [1, 0]> (w) y = MatMul(x, v)")
    symmetric = np.array([[1, 2, 3], [2, 5, 6], [3, 6, 9]], np.float32)
    for name, array in {
        "symmetric": symmetric,
        "zero": symmetric * 0,
        "constant": symmetric * 0 + 2,
        "identity": np.eye(3, dtype=np.float32),
    }.items():
        models = (with_weights(model_from_text(each, 18), {"w": array}, overridable=True) for each in (good, bad))
        yield Pair(f"a transposed weight that is {name}", *models)
    bias = "g (float[N, 3] x, float[3] b) => (float[N, 3] y) {{ {} }}"
    models = [model_from_text(bias.format(each), 18) for each in ("y = Add(x, b)", "y = Identity(x)")]
    yield Pair(
        "a bias of zeros that is left out",
        *(with_weights(each, {"b": np.zeros(3, np.float32)}, overridable=True) for each in models),
    )
    big = text.replace("3, 3", "300, 300").replace("[N, 3]", "[N, 300]")
    models = [
        model_from_text(each, 18)
        for each in (big.format("y = MatMul(x, w)"), big.format("v = Transpose <perm = [1, 0]> (w) y = MatMul(x, v)"))
    ]
    yield Pair(
        "a large symmetric weight",
        *(with_weights(each, {"w": np.ones((300, 300), np.float32)}, overridable=True) for each in models),
    )
    scale = "g (float[N] x, double[1] k) => (float[N] y) {{ f = Cast <to = 1> (k) {} }}"
    models = [model_from_text(scale.format(each), 18) for each in ("y = Mul(x, f)", "y = Identity(x)")]
    yield Pair("a factor of one that is left out", *(with_weights(each, {"k": np.ones(1)}, overridable=True) for each in models))


def _ties() -> Iterator[Pair]:
    index = "g (float[N, 9] x) => (int64[N] y) {{ y = {} (x) }}"
    for kind in ("ArgMax", "ArgMin"):
        last = f"{kind} <axis = 1, keepdims = 0, select_last_index = 1>"
        yield pair(f"{kind} of equals", index.format(f"{kind} <axis = 1, keepdims = 0>"), index.format(last))
    text = "g (float[N, 4] x) => (float[N, 4] y) {{ h = Constant <value_float = 0.5> () z = Constant <value_float = 0.0> () {} }}"
    yield pair("the rounding of halves", text.format("y = Round(x)"), text.format("a = Add(x, h) y = Floor(a)"))
    yield pair(
        "at zero",
        text.format("c = Greater(x, z) y = Cast <to = 1> (c)"),
        text.format("c = GreaterOrEqual(x, z) y = Cast <to = 1> (c)"),
    )
    yield pair(
        "at a half", text.format("c = Less(x, h) y = Cast <to = 1> (c)"), text.format("c = LessOrEqual(x, h) y = Cast <to = 1> (c)")
    )
    yield pair("truncated", text.format("y = Floor(x)"), text.format("i = Cast <to = 6> (x) y = Cast <to = 1> (i)"))
    yield pair("signs of zero", text.format("y = Sign(x)"), text.format("a = Abs(x) y = Div(x, a)"))
    unstable = "g (float[N, 4] x) => (float[N, 4] y) {{ {} }}"
    yield pair(
        "without the maximum",
        unstable.format("y = Softmax(x)"),
        unstable.format("e = Exp(x) a = Constant <value_ints = [-1]> () s = ReduceSum(e, a) y = Div(e, s)"),
    )


def _others() -> Iterator[Pair]:
    text = "g (string[N] x, string[1] t) => (bool[N] y) {{ {} }}"
    yield pair(
        "an empty string",
        text.format("y = Equal(x, x)"),
        text.format('e = Constant <value_string = ""> () c = Equal(x, e) y = Not(c)'),
        19,
    )
    scan = """g (float[T, 3] x, float[3] h) => (float[3] last, float[T, 3] y) {{
      last, y = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] n, float[3] o) {{ {} }}> (h, x) }}"""
    yield pair("a state too late", scan.format("n = Add(s, e) o = Identity(n)"), scan.format("n = Add(s, e) o = Identity(s)"))
    yield pair("a state without its start", scan.format("n = Add(s, e) o = Tanh(n)"), scan.format("n = Add(s, e) o = Tanh(e)"))
    reverse = scan.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_directions = [1]")
    yield pair("a direction", scan.format("n = Add(s, e) o = Tanh(n)"), reverse.format("n = Add(s, e) o = Tanh(n)"))
    decay = "k = Constant <value_float = {}> () d = Mul(s, k) n = Add(d, e) o = Identity(n)"
    yield pair("a slow decay", scan.format(decay.format("0.9")), scan.format(decay.format("0.9002")))
    yield pair(
        "a norm's epsilon",
        *(
            f"g (float[N, 8] x) => (float[N, 8] y) <float[8] s = {{1, 1, 1, 1, 1, 1, 1, 1}}> {{ y = LayerNormalization <epsilon = {e}> (x, s) }}"
            for e in ("1e-5", "1e-3")
        ),
    )
    gelu = 'g (float[N, 8] x) => (float[N, 8] y) {{ y = Gelu <approximate = "{}"> (x) }}'
    yield pair("an approximate Gelu", gelu.format("none"), gelu.format("tanh"), 20)
    hard = "g (float[N, 8] x) => (float[N, 8] y) {{ y = {} (x) }}"
    yield pair("a hard sigmoid", hard.format("HardSigmoid"), hard.format("HardSigmoid <alpha = 0.1666667>"))
