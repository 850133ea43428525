"""Differences are blamed on the first value inside that differs, or on a defect of onnxruntime."""

import onnx
import pytest

import ortscan
from ortscan.errors import VerificationFailed
from ortscan.verification import verify
from tests.support.text import model_from_text

TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] w) => (float[T, 4] y, float[T, 4] z) {
  a = Mul (x, w)
  [middle] b = Add (a, w)
  c = Tanh (b)
  y = Neg (c)
  z = Exp (a)
}"""


def compared(before: str, after: str) -> str:
    models = [onnx.parser.parse_model(text) for text in (before, after)]
    return ortscan.verify(*models, level="quick").summary()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Add (a, w)", "Sub (a, w)", "'b' (Add 'middle') at ["),
        ("Mul (x, w)", "Sub (x, w)", "'a' (Mul) at ["),
        ("c = Tanh (b)", "c = Sin (b)", "'c' (Tanh) at ["),
    ],
)
def test_it_is_the_first_on_the_way(old: str, new: str, message: str) -> None:
    assert f"; the first value inside that differs is {message}" in compared(TEXT, TEXT.replace(old, new))


def test_where_only_outputs_differ_nothing_is_named() -> None:
    assert "inside" not in compared(TEXT, TEXT.replace("Neg (c)", "Abs (c)"))
    assert "inside" not in compared(TEXT, TEXT)


def test_values_of_another_rank_are_others_by_the_same_name() -> None:
    other = TEXT.replace("c = Tanh (b)", "c = Sin (b)").replace("a = Mul (x, w)", "p = Mul (x, w) a = Identity (p)")
    other = other.replace("[middle] b = Add (a, w)", "q = Add (a, w) b = Shape (q) ").replace("Sin (b)", "Sin (q)")
    assert "the first value inside that differs is 'c'" in compared(TEXT, other)


@pytest.mark.parametrize("between", ["", "Identity"])
@pytest.mark.parametrize("opset", [13, 18])
def test_a_transposed_matrix_times_a_vector_is_blamed_on_onnxruntime(between: str, opset: int):
    product = f"t = Transpose (x) u = {between} (t) p = MatMul (u, v)" if between else "t = Transpose (x) p = MatMul (t, v)"
    text = f"""g (float[2] s0, float[T,2,2] xs) => (float[2] s, float[T,2] ys) <float[2] v = {{1, 10}}> {{
        s, ys = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2,2] x) => (float[2] n, float[2] y) {{
            {product} n = Add (h, p) y = Tanh (n) }}> (s0, xs) }}"""
    with pytest.raises(VerificationFailed, match=r"graph optimisation off, .* \(ORT-TRANSPOSED-TIMES-VECTOR: A Transpose before"):
        ortscan.optimize(model_from_text(text, opset))


def test_a_product_written_otherwise_is_blamed_on_onnxruntime_and_another_result_is_not():
    text = "g (float[2,3] x, float[2] v) => (float[3] y) {{ a = Constant <value_ints = [1]> () {} y = Squeeze (q, a) }}"
    vector = "t = Transpose (x) p = MatMul (t, v) q = Unsqueeze (p, a)"
    column = "t = Transpose (x) w = Unsqueeze (v, a) q = MatMul (t, w)"
    before, after, wrong = (model_from_text(text.format(nodes), 18) for nodes in (vector, column, column + " n = Neg (q)"))
    wrong.graph.node[-1].input[0] = "n"
    assert "ORT-TRANSPOSED-TIMES-VECTOR" in verify(before, after).first_difference.inside
    assert "ORT-" not in verify(before, wrong).summary()


@pytest.mark.parametrize("kind", ["double", "float16"])
@pytest.mark.parametrize("between", ["c = Cast <to = 1> (t)", "i = Identity (t) c = Cast <to = 1> (i)"])
def test_the_defect_of_a_transposed_product_is_named_with_a_cast_in_between(kind: str, between: str) -> None:
    text = f"g ({kind}[2,3] x, float[2] v) => (float[3] y) {{{{ a = Constant <value_ints = [1]> () {{}} y = Squeeze (q, a) }}}}"
    vector = f"t = Transpose (x) {between} p = MatMul (c, v) q = Unsqueeze (p, a)"
    column = f"t = Transpose (x) {between} w = Unsqueeze (v, a) q = MatMul (c, w)"
    before, after = (model_from_text(text.format(nodes), 18) for nodes in (vector, column))
    outcome = verify(before, after)
    assert outcome.inconclusive
    assert "it cannot be compared (ORT-TRANSPOSED-TIMES-VECTOR: " in outcome.summary()
