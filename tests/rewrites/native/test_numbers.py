"""Plans compute in numpy, step by step, what onnxruntime's Scan computes."""

import numpy as np
import pytest

from tests.rewrites.harness import scan
from tests.rewrites.native.harness import same_numbers

CELLS = {
    "LSTM": scan(
        "u = Unsqueeze (h, k) g = Gemm <transB = 1> (u, w, b) p = Squeeze (g, k) q = Add (p, x) i, f, o, n = Split <axis = 0, num_outputs = 4> (q)"
        " si = Sigmoid (i) sf = Sigmoid (f) so = Sigmoid (o) tn = Tanh (n) a = Mul (sf, c) d = Mul (si, tn) c1 = Add (a, d)"
        " t = Tanh (c1) h1 = Mul (so, t) y = Identity (h1)",
        inputs="float[20] h, float[20] c, float[80] x",
        outputs="float[20] h1, float[20] c1, float[20] y",
        given="float[20] s, float[20] r, float[5,80] xs, float[80,20] w, float[80] b",
        operands="s, r, xs",
        outer="z, v, ys",
        results="float[20] z, float[20] v, float[5,20] ys",
        weights="int64[1] k = {0}",
    ),
    "LSTM with layer normalization": scan(
        "m = MatMul (h, w) g = Add (m, x) n = LayerNormalization <epsilon = 0.001> (g, sc, b) i, f, o, u = Split <axis = 1, num_outputs = 4> (n)"
        " si = Sigmoid (i) sf = Sigmoid (f) so = Sigmoid (o) tu = Tanh (u) a = Mul (sf, c) d = Mul (si, tu) e = Add (a, d)"
        " c1 = LayerNormalization (e, sd) t = Tanh (c1) h1 = Mul (so, t) y = Identity (h1)",
        inputs="float[3,6] h, float[3,6] c, float[3,24] x",
        outputs="float[3,6] h1, float[3,6] c1, float[3,6] y",
        given="float[3,6] s, float[3,6] r, float[5,3,24] xs, float[6,24] w, float[24] sc, float[24] b, float[6] sd",
        operands="s, r, xs",
        outer="z, v, ys",
        results="float[3,6] z, float[3,6] v, float[5,3,6] ys",
    ),
    "cumulative maximum": scan("h1 = Max (h, x) y = Identity (h1)"),
    "moving average": scan("d = Sub (x, h) a = Mul (d, k) h1 = Add (h, a) y = Identity (h1)", weights="float k = {0.1}"),
    "biquad": scan(
        "a = Mul (x, b0) y = Add (a, h) b = Mul (x, b1) c = Mul (y, a1) d = Sub (b, c) h1 = Add (d, g) e = Mul (x, b2) f = Mul (y, a2) g1 = Sub (e, f)",
        inputs="float[2] h, float[2] g, float[2] x",
        outputs="float[2] h1, float[2] g1, float[2] y",
        given="float[2] s, float[2] r, float[3,2] xs",
        operands="s, r, xs",
        outer="z, v, ys",
        results="float[2] z, float[2] v, float[3,2] ys",
        weights="float b0 = {0.2}, float b1 = {0.3}, float b2 = {0.2}, float a1 = {-0.5}, float a2 = {0.1}",
    ),
    "Kalman filter": scan(
        "fx = MatMul (f, h) fp = MatMul (f, p) ft = Transpose <perm = [1, 0]> (f) pp = MatMul (fp, ft) p0 = Add (pp, q)"
        " hp = MatMul (m, p0) mt = Transpose <perm = [1, 0]> (m) s0 = MatMul (hp, mt) s1 = Add (s0, r) pm = MatMul (p0, mt) k = Div (pm, s1)"
        " e0 = MatMul (m, fx) e = Sub (x, e0) ke = MatMul (k, e) h1 = Add (fx, ke) km = MatMul (k, m) i = Sub (eye, km) p1 = MatMul (i, p0)"
        " y = Squeeze (h1, one)",
        inputs="float[2,1] h, float[2,2] p, float[1,1] x",
        outputs="float[2,1] h1, float[2,2] p1, float[2] y",
        given="float[2,1] s, float[2,2] u, float[6,1,1] xs",
        operands="s, u, xs",
        outer="z, v, ys",
        results="float[2,1] z, float[2,2] v, float[6,2] ys",
        weights="float[2,2] f = {1, 0.1, 0, 1}, float[2,2] q = {0.3, 0, 0, 0.3}, float[1,2] m = {1, 0}, float[1,1] r = {9},"
        " float[2,2] eye = {1, 0, 0, 1}, int64[1] one = {1}",
    ),
    "attention": scan(
        "q = MatMul (h, wq) qe = Unsqueeze (q, one) sc = MatMul (qe, kt) a = Softmax (sc) ce = MatMul (a, vs) c = Squeeze (ce, one)"
        " j = Concat <axis = 1> (c, x) g = Gemm (j, wo, b) h1 = Tanh (g) y = Squeeze (a, one)",
        inputs="float[2,8] h, float[2,3] x",
        outputs="float[2,8] h1, float[2,7] y",
        given="float[2,8] s, float[4,2,3] xs, float[8,8] wq, float[2,8,7] kt, float[2,7,8] vs, float[11,8] wo, float[8] b",
        results="float[2,8] z, float[4,2,7] ys",
        weights="int64[1] one = {1}",
    ),
    "leaky integrate and fire": scan(
        "d = Mul (h, k) v = Add (d, x) p = GreaterOrEqual (v, t) y = Cast <to = 1> (p) n = Not (p) m = Cast <to = 1> (n) h1 = Mul (v, m)",
        weights="float k = {0.9}, float t = {0.5}",
    ),
    "delta rule of a dynamo exporter": scan(
        "k, v = Split <axis = 0, num_outputs = 2> (x) kr = Reshape <allowzero = 1> (k, row) vc = Reshape <allowzero = 1> (v, col)"
        " hk = MatMul (h, k) hc = Reshape <allowzero = 1> (hk, col) e = Sub (vc, hc) o = Mul (e, kr) h1 = Add (h, o)"
        " f = Reshape <allowzero = 1> (h1, flat) y = Tanh (f)",
        inputs="float[3,3] h, float[6] x",
        outputs="float[3,3] h1, float[9] y",
        given="float[3,3] s, float[4,6] xs",
        results="float[3,3] z, float[4,9] ys",
        weights="int64[2] row = {1, 3}, int64[2] col = {-1, 1}, int64[1] flat = {9}",
    ),
    "delta rule": scan(
        "k, v = Split <axis = 0, num_outputs = 2> (x) kr = Reshape (k, row) vc = Reshape (v, col) hk = MatMul (h, k) hc = Reshape (hk, col)"
        " e = Sub (vc, hc) o = Mul (e, kr) h1 = Add (h, o) y = MatMul (h1, k)",
        inputs="float[3,3] h, float[6] x",
        outputs="float[3,3] h1, float[3] y",
        given="float[3,3] s, float[4,6] xs",
        results="float[3,3] z, float[4,3] ys",
        weights="int64[2] row = {1, 3}, int64[2] col = {3, 1}",
    ),
}


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_computes_what_the_scan_does(cell: str) -> None:
    same_numbers(CELLS[cell])


OPERATORS = [
    *(
        f"a = {op} (x)"
        for op in [
            "Abs",
            "Neg",
            "Exp",
            "Tanh",
            "Sigmoid",
            "Relu",
            "Erf",
            "Floor",
            "Ceil",
            "Round",
            "Sign",
            "Elu",
            "LeakyRelu",
            "HardSigmoid",
            "Softsign",
            "Softplus",
            "Sin",
            "Cos",
        ]
    ),
    *(
        f"a = {op} (x)"
        for op in ["Gelu", "HardSwish", "Mish", "ThresholdedRelu", "Reciprocal", "Identity", "Softmax", "LogSoftmax"]
    ),
    *(f"a = {op} (h, x)" for op in ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "PRelu", "Mod <fmod=1>"]),
    *(f"p = {op} (h, x) a = Where (p, h, x)" for op in ["Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal"]),
    *(f"p = Greater (h, x) q = Less (h, k) r = {op} (p, q) a = Cast <to = 1> (r)" for op in ["And", "Or", "Xor", "Equal"]),
    "b = Abs (x) c = Sqrt (b) a = Log (b) d = Add (c, a)",
    "a = Clip (x, k)",
    "a = Clip (x, , k)",
    "a = Pow (x, two)",
    "a = Pow (x, three)",
    "a = Max (x, h, k)",
    "b = Relu (x) p = Cast <to = 9> (b) a = Cast <to = 1> (p)",
    "b = Relu (x) p = Cast <to = 9> (b) a = CastLike (p, h)",
    "p = Greater (x, h) q = CastLike (x, p) n = Cast <to = 7> (x) m = CastLike (x, n) b = Cast <to = 1> (q) c = Cast <to = 1> (m) a = Add (b, c)",
    "a = Softmax <axis = 0> (x)",
    "a = Softmax <axis = 1> (x)",
    "a = LayerNormalization <axis = 1> (x, sc)",
    "b = ReduceMax <keepdims = 1> (x, last) a = Sub (x, b)",
    "b = ReduceMin <keepdims = 0> (x, first) a = Sub (x, b)",
    "b = ReduceMean (x, both) a = Sub (x, b)",
    "b = ReduceSum (x) a = Sub (x, b)",
    "b = ReduceSumSquare <keepdims = 0> (x, last) c = Unsqueeze (b, last) a = Sub (x, c)",
    "b = ReduceLogSumExp (x, middle) a = Sub (x, b)",
    "b = ReduceLogSumExp <keepdims = 0> (x, last) c = Unsqueeze (b, last) a = Sub (x, c)",
    *(
        f'a = Einsum <equation = "{equation}"> (x, h)'
        for equation in ("ijk,ijk->ij", "ijk,ilk->ijl", "ijk,lmk->milj", "ijk,lmn->ijklmn", "ijk,ijk->kji", "i jk,ljk->li")
    ),
    "b = ReduceL1 (x, middle) a = Sub (x, b)",
    "b = ReduceL2 (x, first) a = Sub (x, b)",
    "b = Transpose <perm = [2, 0, 1]> (x) c = Reshape (b, flat) a = Reshape (c, cube)",
    "b = Transpose <perm = [2, 0, 1]> (x) c = Exp (b) a = Transpose <perm = [1, 2, 0]> (c)",
    "b = Slice (x, two64, zero64, last, minus) c = Slice (x, zero64, two64, last) a = Concat <axis = 2> (b, c)",
    "b = Tile (x, times) a = Slice (b, one64, four64, last)",
    "b = Dropout (x) a = Flatten <axis = 2> (b) c = Reshape (a, cube) d = Add (c, x)",
    "t = Transpose <perm = [0, 2, 1]> (x) a = MatMul (x, t)",
    "t = Transpose <perm = [2, 1, 0]> (x) b = MatMul (t, h) a = Transpose <perm = [2, 0, 1]> (x)",
    "n = Cast <to = 7> (x) p = Mod <fmod=1> (n, three) a = Cast <to = 1> (p)",
    "e = Mul (x, k9) n = Cast <to = 7> (e) t = Transpose <perm = [0, 2, 1]> (n) p = MatMul (n, t) q = Add (p, n) a = Cast <to = 1> (q)",
    "e = Mul (x, k9) n = Cast <to = 6> (e) t = Transpose <perm = [0, 2, 1]> (n) p = MatMul (n, t) a = Cast <to = 1> (p)",
    "b = Slice (x, zero64, one64, last) c = Slice (x, zero64, one64, middle) a = MatMul (b, c)",
]


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_computes_what_it_does_in_a_scan(operator: str) -> None:
    shape = "2,3,3" if "MatMul" in operator else "2,3,4"
    if "(t, h)" in operator:
        shape = "3,3,3"
    names = ["a", "d"] if "d =" in operator else ["a"]
    inside = f"{operator} h1 = Tanh (x) y = Identity ({names[-1]})"
    weights = (
        "float k = {0.25}, float k9 = {70000}, float two = {2}, int64[1] three = {3}, float[4] sc = {1, 2, 3, 4}, int64[1] last = {2}, int64[1] first = {0},"
        " int64[1] middle = {1}, int64[2] both = {0, -1}, int64[1] flat = {-1}, int64[3] cube = {2, 3, 4}, int64[1] two64 = {2},"
        " int64[1] zero64 = {0}, int64[1] one64 = {1}, int64[1] four64 = {4}, int64[1] minus = {-1}, int64[3] times = {1, 1, 2}"
    )
    if "LayerNorm" in operator:
        weights = "float[3,4] sc = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}"
    unknown = "float[] ys"
    text = scan(
        inside,
        inputs=f"float[{shape}] h, float[{shape}] x",
        outputs=f"float[{shape}] h1, y",
        given=f"float[{shape}] s, float[5,{shape}] xs",
        results=f"float[{shape}] z, {unknown}",
        weights=weights,
    )
    same_numbers(text, opset=20)


@pytest.mark.parametrize("opset", [27, 28])
def test_sums_of_powers_overflow_where_they_do_in_a_scan(opset: int) -> None:
    text = scan(
        "h1 = ReduceLogSumExp <keepdims = 1> (x, last) y = Add (h, h1)",
        inputs="float[1] h, float[3] x",
        outputs="float[1] h1, float[1] y",
        given="float[1] s, float[3,3] xs",
        results="float[1] z, float[3,1] ys",
        weights="int64[1] last = {0}",
    )
    wide = np.array([[1e4, 1, 2], [-1e4, -1e4, -1e4], [3, 4, 5]], np.float32)
    same_numbers(text, {"s": np.zeros(1, np.float32), "xs": wide}, opset=opset)


@pytest.mark.parametrize(
    "operator", ["Max (x, h)", "Min (h, x)", "Clip (x, k)", "Clip (x, , k)", "Relu (x)", "Div (x, h)", "Greater (x, h)", "Not (p)"]
)
def test_numbers_that_are_none_pass_as_they_do_in_a_scan(operator: str) -> None:
    odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    inside = f"p = Cast <to = 9> (x) a = {operator} h1 = Identity (x) y = Cast <to = 1> (a)"
    text = scan(
        inside,
        inputs="float[6] h, float[6] x",
        outputs="float[6] h1, float[6] y",
        given="float[6] s, float[6,6] xs",
        results="float[6] z, float[6,6] ys",
        weights="float k = {0.5}",
    )
    same_numbers(text, {"s": odd, "xs": np.stack([np.roll(odd, shift) for shift in range(6)])})


def test_a_sum_of_powers_of_endless_numbers_is_what_it_is_in_a_scan() -> None:
    odd = np.array([[[np.inf, 1], [-np.inf, -np.inf], [np.nan, 0], [-np.inf, 2]]], np.float32)
    text = scan(
        "a = ReduceLogSumExp <keepdims = 0> (x, last) h1 = Add (h, a) y = Exp (x)",
        inputs="float[4] h, float[4,2] x",
        outputs="float[4] h1, float[4,2] y",
        given="float[4] s, float[1,4,2] xs",
        results="float[4] z, float[1,4,2] ys",
        weights="int64[1] last = {1}",
    )
    same_numbers(text, {"s": np.zeros(4, np.float32), "xs": odd})
