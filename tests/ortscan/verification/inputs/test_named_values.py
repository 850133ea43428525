"""Input values that a model names, and the cases with these values."""

import numpy as np
import onnx
import pytest

from ortscan.running.budget import Budget
from ortscan.running.specs import input_specs
from ortscan.verification import verify
from ortscan.verification.inputs.named_values import named_values
from ortscan.verification.inputs.prepare import prepare
from tests.support.text import model_from_text


def named(text, opset=18):
    model = model_from_text(text, opset)
    return named_values([model], input_specs(model.graph))


def fed(text, name="x", level="full", opset=18):
    """Return the values of an input, by case."""
    model = model_from_text(text, opset)
    inputs = prepare((model, model), [set(), set()], input_specs(model.graph), {}, {}, 0, level, Budget(60, 1 << 30)).inputs
    planned_cases = (*inputs.planned_cases(None), *inputs.unusual_cases(None))
    return [(planned.point, inputs.feed(planned.point, planned.attempts[0])[name]) for planned in planned_cases]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Greater(x, c)", [7.0]),
        ("y = Equal(c, x)", [7.0]),
        ("k = Constant <value_float = 2.0> () a = Mul(x, k) y = Less(a, c)", [3.5]),
        ("k = Constant <value_float = 2.0> () a = Sub(k, x) y = Less(a, c)", [-5.0]),
        ("a = Abs(x) y = Less(a, c)", [7.0, -7.0]),
        ("k = Constant <value_float = 3.0> () a = Mul(x, k) y = Less(a, c)", []),
        ("a = Cast <to = 7> (x) d = Cast <to = 7> (c) y = Less(a, d)", [7.0]),
        ("u = Constant <value_ints = [0]> () d = Unsqueeze(c, u) e = Neg(x) y = Less(e, d)", [-7.0]),
        ("a = Sin(x) y = Less(a, c)", []),
    ],
)
def test_floats_are_named_through_what_is_linear(nodes, expected):
    found = named(f"g (float[N] x) => (bool[N] y) {{ c = Constant <value_float = 7.0> () {nodes} }}")
    assert list(found.exact.get("x", [])) == expected


def test_a_number_that_something_else_is_compared_with_is_said():
    text = "g (float[N] x) => (bool[N] y) { c = Constant <value_float = 7.0> () a = Sin(x) y = Less(a, c) }"
    assert named(text).unassigned == [7.0]
    assert "inputs for which a computed value equals 7" in verify(model_from_text(text, 18), model_from_text(text, 18)).summary()
    counted = "g (float[N] x) => (bool y) { c = Constant <value_int = 7> () n = Size(x) y = Less(n, c) }"
    assert named(counted).unassigned == []


def test_functions_that_call_themselves_name_nothing():
    own = '<ir_version: 10, opset_import: ["": 18, "own": 1]>'
    text = f'{own} g (float[N] x) => (float[N] y) {{ y = own.f(x) }} <domain: "own", opset_import: ["": 18, "own": 1]> f (a) => (b) {{ b = own.f(a) }}'
    model = onnx.parser.parse_model(text)
    assert named_values([model], input_specs(model.graph)).exact == {}


def test_both_models_name_values():
    models = [
        model_from_text(f"g (int64[N] x) => (bool[N] y) {{ c = Constant <value_int = {n}> () y = Equal(x, c) }}", 18)
        for n in (40, 50)
    ]
    assert list(named_values(models, input_specs(models[0].graph)).exact["x"]) == [40, 50]


def test_named_values_take_every_second_place_and_leave_the_others():
    text = "g (float[9] x) => (bool[9] y) { c = Constant <value_float = 70.0> () y = Greater(x, c) }"
    cases = [value for point, value in fed(text) if point.kind == "named"]
    assert len(cases) == 1
    assert (cases[0][::2] > 69).all()
    assert (np.abs(cases[0][1::2]) <= 4).all()
    assert any((value == 70.0).any() for point, value in fed(text, level="quick") if point.kind == "named")


def test_a_single_element_takes_one_after_the_other():
    text = "g (int64 x) => (bool y) { c = Constant <value_int = 1000> () y = Greater(x, c) }"
    assert [int(value) for point, value in fed(text) if point.kind == "named"] == [1000, 1001, 999]


def test_named_values_of_an_index_stay_inside_what_it_indexes():
    text = """g (int64[N] x, float[30] t) => (float[N] y) {
      c = Constant <value_int = 29> () d = Constant <value_int = 40> () e = Min(x, d) f = Equal(x, c) r = Gather(t, e) y = Where(f, r, r) }"""
    for _, value in fed(text):
        assert (value >= -30).all()
        assert (value < 30).all()
    assert any((value == 29).any() for point, value in fed(text) if point.kind == "named")


def test_named_values_of_a_divisor_are_none_that_ends_the_process():
    text = (
        "g (int64[N] a, int64[N] x) => (int64[N] y) { c = Constant <value_int = 0> () d = Max(x, c) e = Div(a, x) y = Add(d, e) }"
    )
    for _, value in fed(text):
        assert not np.isin(value, (0, -1)).any()


def test_a_named_number_that_may_be_a_size_is_not_fed_but_said():
    text = "g (int64[1] x) => (float[N] y) { c = Constant <value_int = 1000000000> () d = Equal(x, c) e = Where(d, x, x) s = Abs(e) y = ConstantOfShape(s) }"
    assert all((value <= 1 << 16).all() for _, value in fed(text))


@pytest.mark.parametrize("size", ["1", "N"])
def test_the_ends_of_a_table_are_drawn(size):
    text = f"g (int64[{size}] x, float[1000] t) => (float[{size}] y) {{ y = Gather(t, x) }}"
    values = np.concatenate([value.ravel() for _, value in fed(text)])
    assert {0, 999, -1, -1000} <= set(values.tolist())


def test_a_table_that_is_hardly_read_is_said():
    model = model_from_text("g (int64[1] x, float[1000] t) => (float[1] y) { y = Gather(t, x) }", 18)
    assert "most of the 1000 values that 'x' can have" in verify(model, model).not_tried


def test_a_pattern_that_no_word_is_known_for_is_said():
    text = 'g (string[N] x) => (bool[N] y) { y = RegexFullMatch <pattern = "[0-9]{3}-[x-z]{4}"> (x) }'
    model = model_from_text(text, 20)
    assert "strings that match '[0-9]{3}-[x-z]{4}'" in verify(model, model).not_tried
    known = model_from_text(text.replace("[0-9]{3}-[x-z]{4}", "[a-z]+"), 20)
    assert not any("strings" in said for said in verify(known, known).not_tried)


def test_exact_numbers_hold_halves_and_one_zero_below_zero():
    values = np.concatenate(
        [value.ravel() for point, value in fed("g (float[N, 4] x) => (float[N, 4] y) { y = Abs(x) }") if point.kind == "mixed"]
    )
    assert {2.5, -2.5, 3.5, 0.5, 0.0} <= set(values.tolist())
    assert (values * 2 % 1 == 0).all()
    assert (np.signbit(values) & (values == 0)).any()


def test_named_values_that_the_original_refuses_are_said():
    text = """g (int64[1] x, float[5] t) => (float y) {
      c = Constant <value_int = 1000> () d = Equal(x, c) e = Where(d, x, x) p = ReduceProd <keepdims = 0> (e) y = Gather(t, p) }"""
    outcome = verify(model_from_text(text, 18), model_from_text(text, 18))
    assert outcome.ok
    assert "the values that the models compare inputs with, which the original rejects" in outcome.not_tried


MASK = "g (int64[N] x, float[N] e) => (float[N] y) { c = Constant <value_int = 50256> () d = Equal(x, c) z = Sub(e, e) y = Where(d, z, e) }"
ABOVE = "g (float[N] x) => (bool[N] y) { c = Constant <value_float = 42.0> () y = Greater(x, c) }"
WORD = 'g (string[N] x) => (bool[N] y) { c = Constant <value_string = "yes"> () y = Equal(x, c) }'


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [(MASK, "Where(d, z, e)", "Identity(e)"), (ABOVE, "Greater(", "GreaterOrEqual("), (WORD, '"yes"', '"no"')],
    ids=["a mask", "a threshold", "a word"],
)
def test_a_quick_comparison_feeds_named_values_too(text, old, new):
    assert verify(model_from_text(text, 19), model_from_text(text.replace(old, new), 19), level="quick").outcome == "different"


def test_a_mask_has_one_element_unlike_the_others_in_some_case():
    sums = {
        (int(value.sum()), int((~value).sum()))
        for point, value in fed("g (bool[N] x, float[N] e) => (float[N] y) { y = Where(x, e, e) }")
        if value.size > 2
    }
    assert any(one == 1 for one, _ in sums)
    assert any(other == 1 for _, other in sums)
