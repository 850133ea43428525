"""Two models agree if onnx infers the same shapes for them at sizes that fit the original."""

import json

import pytest

from ortscan.soundness import shape_agreement
from ortscan.soundness.shape_agreement import disagreement
from tests.support.text import model_from_text

HEAD = '<ir_version: 10, opset_import: ["": 21]> g (float[3,?,2] z, float[3,?,2] x, int32[?] lengths, float[?,2] row) => (float[?,?,?] y)'
RNN = """w = Constant <value = float[1,2,2] {1, 2, 3, 4}> () r = Constant <value = float[1,2,2] {1, 2, 3, 4}> ()
    a, b = RNN <hidden_size = 2> (x, w, r, , lengths)"""
SCAN = "a = Scan <num_scan_inputs = 2, scan_input_axes = [1, 1], body = b (float[3,2] e, float[3,2] f) => (float[3,2] g) { g = Add (e, f) }> (x, z)"
SPREAD = "one = Constant <value = int64[1] {1}> () shape = Concat <axis = 0> (one, k, one) y = ConstantOfShape (shape)"


def _differ(before: str, after: str, *, check: bool = True) -> bool:
    old, new = (model_from_text(f"{HEAD} {{ {body} }}", check=check) for body in (before, after))
    return disagreement(old, new) is not None


@pytest.mark.parametrize(
    ("loop", "size", "same_size"),
    [
        (RNN, "k = Shape (lengths)", "k = Shape <start = 1, end = 2> (x)"),
        (SCAN, "k = Shape <start = 1, end = 2> (x)", "k = Shape <start = 1, end = 2> (z)"),
        ("a = Add (x, z)", "k = Shape <start = 1, end = 2> (x)", "k = Shape <start = 1, end = 2> (z)"),
    ],
)
def test_sizes_that_an_operator_needs_equal_may_stand_for_each_other(loop: str, size: str, same_size: str) -> None:
    assert not _differ(f"{loop} {size} {SPREAD}", f"{loop} {same_size} {SPREAD}")


def test_other_sizes_may_not_stand_for_each_other() -> None:
    x, z = (f"k = Shape <start = 1, end = 2> ({name}) {SPREAD}" for name in "xz")
    assert _differ(x, z)


@pytest.mark.parametrize("result", ["y = Transpose <perm = [1, 0, 2]> (t)", "y = Concat <axis = 1> (t, t)"])
def test_another_shape_at_fitting_sizes_is_a_difference(result: str) -> None:
    assert _differ("t = Add (x, row) y = Relu (t)", f"t = Add (x, row) {result}")
    assert not _differ("t = Add (x, row) y = Relu (t)", "t = Add (row, x) y = Relu (t)")


def test_a_difference_counts_if_the_original_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_agreement, "analyse", lambda model, specs: json.loads("not a model"))
    assert _differ("y = Relu (x)", "y = Concat <axis = 1> (x, x)")


def test_a_value_whose_declared_shape_onnx_contradicts_is_not_compared() -> None:
    assert not _differ("y = Relu (row)", "y = Relu (x)", check=False)
    assert _differ("y = Relu (z)", "t = Relu (x) y = Concat <axis = 1> (t, t)")
