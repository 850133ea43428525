"""Where outputs differ, the first value inside that differs is named."""

import onnx
import pytest

import ortscan

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
    ("old", "new", "said"),
    [
        ("Add (a, w)", "Sub (a, w)", "'b' (Add 'middle') at ["),
        ("Mul (x, w)", "Sub (x, w)", "'a' (Mul) at ["),
        ("c = Tanh (b)", "c = Sin (b)", "'c' (Tanh) at ["),
    ],
)
def test_it_is_the_first_on_the_way(old: str, new: str, said: str) -> None:
    assert f"; the first value inside that differs is {said}" in compared(TEXT, TEXT.replace(old, new))


def test_where_only_outputs_differ_nothing_is_named() -> None:
    assert "inside" not in compared(TEXT, TEXT.replace("Neg (c)", "Abs (c)"))
    assert "inside" not in compared(TEXT, TEXT)


def test_values_of_another_rank_are_others_by_the_same_name() -> None:
    other = TEXT.replace("c = Tanh (b)", "c = Sin (b)").replace("a = Mul (x, w)", "p = Mul (x, w) a = Identity (p)")
    other = other.replace("[middle] b = Add (a, w)", "q = Add (a, w) b = Shape (q) ").replace("Sin (b)", "Sin (q)")
    assert "the first value inside that differs is 'c'" in compared(TEXT, other)
