"""Normalised text: what it hides, what it shows, and the comparisons built on it."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from tests.campaigns.fuzz.scan_cases import OPSETS
from tests.support.corpus import CorpusModel, corpus_models
from tests.support.text import assert_same_numbers, assert_text_equal, model_from_text, normalised

SCAN = """
g (float[2] s0, float[T,2] x) => (float[2] s, float[T,2] y) <float[2] w = {0.5, 2}> {
    k = Exp (w)
    s, y = Scan <num_scan_inputs = 1, body = step (float[2] h, float[2] xt) => (float[2] h1, float[2] yt) {
        a = Mul (xt, k) b = Add (a, w) h1 = Add (h, b) yt = Tanh (h1)
    }> (s0, x)
}"""
RENAMED = """
other (float[2] s0, float[T,2] x) => (float[2] s, float[T,2] y) <float[2] weight = {0.5, 2}> {
    "e/x:p" = Exp (weight)
    s, y = Scan <body = another (p, q) => (r, t) {
        m = Mul (q, "e/x:p")
        n = Add (m, weight) r = Add (p, n) t = Tanh (r)
    }, num_scan_inputs = 1> (s0, x)
}"""


def test_names_and_attribute_order_do_not_show() -> None:
    assert_text_equal(model_from_text(SCAN, 18), RENAMED)


def test_the_order_of_independent_nodes_does_not_show() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Exp (x)  b = Neg (x)  y = Add (a, b) }"
    swapped = "g (float[2] x) => (float[2] y) { b = Neg (x)  a = Exp (x)  y = Add (a, b) }"
    assert_text_equal(model_from_text(text, 18), swapped)


def test_derived_facts_and_labels_do_not_show() -> None:
    model = model_from_text(SCAN, 18)
    labelled = onnx.shape_inference.infer_shapes(model)
    labelled.producer_name = "someone"
    labelled.graph.node[0].name = "first"
    labelled.graph.node[0].doc_string = "words"
    labelled.graph.node[0].metadata_props.add(key="a", value="b")
    assert normalised(labelled) == normalised(model)
    assert labelled.graph.node[0].name == "first"


def test_an_ir_model_prints_like_its_proto() -> None:
    model = model_from_text(SCAN, 18)
    assert normalised(ir.from_proto(model)) == normalised(model)


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("yt = Tanh (h1)", "yt = Tanh (b)"),
        ("h1 = Add (h, b)", "h1 = Add (b, h)"),
        ("h1 = Add (h, b)", "h1 = Sub (h, b)"),
        ("{0.5, 2}", "{0.5, 2.0001}"),
        ("=> (float[2] h1, float[2] yt)", "=> (float[2] yt, float[2] h1)"),
        ("k = Exp (w)", "k = Exp (w) dead = Neg (k)"),
        ("float[T,2] x", "float[N,2] x"),
        ("num_scan_inputs = 1,", "num_scan_inputs = 1, scan_input_directions = [1],"),
    ],
)
def test_a_difference_in_meaning_shows(there: str, instead: str) -> None:
    assert there in SCAN
    changed = SCAN.replace(there, instead)
    with pytest.raises(AssertionError, match="the models differ"):
        assert_text_equal(model_from_text(changed, 18, check=False), SCAN)


def test_a_difference_in_opset_shows() -> None:
    expected = '<ir_version: 10, opset_import: ["": 19]>' + SCAN
    with pytest.raises(AssertionError, match="the models differ"):
        assert_text_equal(model_from_text(SCAN, 18), expected)


def test_body_types_show_on_request() -> None:
    model = model_from_text(SCAN, 18)
    assert_text_equal(model, SCAN, body_types=True)
    with pytest.raises(AssertionError, match="the models differ"):
        assert_text_equal(model, RENAMED, body_types=True)


def test_a_value_captured_from_outside_is_not_one_made_inside() -> None:
    outside = """g (float[T,2] x, float[2] w) => (float[T,2] y) { k = Neg (w)
        y = Scan <num_scan_inputs = 1, body = b (xt) => (yt) { yt = Add (xt, k) }> (x) }"""
    inside = """g (float[T,2] x, float[2] w) => (float[T,2] y) {
        y = Scan <num_scan_inputs = 1, body = b (xt) => (yt) { k = Neg (w)  yt = Add (xt, k) }> (x) }"""
    with pytest.raises(AssertionError, match="the models differ"):
        assert_text_equal(model_from_text(outside, 18, check=False), inside)


def test_a_body_may_use_names_of_the_main_graph_for_values_of_its_own() -> None:
    shadowing = "g (float[T] x) => (float[T] y) { y = Scan <num_scan_inputs = 1, body = b (x) => (y) { y = Neg (x) }> (x) }"
    plain = "g (float[T] x) => (float[T] y) { y = Scan <num_scan_inputs = 1, body = b (p) => (q) { q = Neg (p) }> (x) }"
    assert_text_equal(model_from_text(shadowing, 18, check=False), plain)


def test_functions_are_normalised_too() -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "local": 1]>
        g (float[2] x) => (float[2] y) {{ y = local.f (x) }}
        <opset_import: ["": 18], domain: "local"> f (a) => (b) {{ {0} = Neg (a)  b = Exp ({0}) }}"""
    assert_text_equal(model_from_text(text.format("one")), text.format("two"))
    with pytest.raises(AssertionError, match="the models differ"):
        assert_text_equal(model_from_text(text.format("one")), text.format("two").replace("Exp", "Abs"))


@pytest.mark.parametrize("model", corpus_models(loadable=False))
def test_normalised_text_reads_back_as_itself_for(model: CorpusModel) -> None:
    text = normalised(model.load())
    assert normalised(model_from_text(text, check=False)) == text


@pytest.mark.parametrize("opset", OPSETS)
def test_a_graph_is_read_under_the_given_opset(opset: int) -> None:
    model = model_from_text("g (float[2] x) => (float[2] y) { y = Neg (x) }", opset)
    assert (model.opset_import[0].version, model.ir_version) == (opset, 10)


def test_an_invalid_model_is_refused_unless_unchecked() -> None:
    text = "g (float[2] x) => (float[2] y) { y = Neg (nothing) }"
    with pytest.raises(onnx.checker.ValidationError):
        model_from_text(text, 18)
    assert model_from_text(text, 18, check=False).graph.node


@pytest.mark.parametrize(
    ("actual", "message"),
    [
        ([np.array([1, 2], np.float32), np.array(3)], "1 values|2 values"),
        ([np.array([1, 2.001], np.float32)], "Not equal to tolerance"),
        ([np.array([1, np.nan], np.float32)], "nan location mismatch"),
        ([np.array([1, 2], np.float64)], "type float64, expected float32"),
        ([np.array([[1, 2]], np.float32)], "shape"),
    ],
)
def test_numbers_that_differ_in_count_value_type_or_shape_are_told_apart(actual: list[np.ndarray], message: str) -> None:
    assert_same_numbers([np.array([1, 2.000001], np.float32)], [np.array([1, 2], np.float32)])
    with pytest.raises(AssertionError, match=message):
        assert_same_numbers(actual, [np.array([1, 2], np.float32)])


def test_half_floats_are_compared_at_their_own_precision() -> None:
    assert_same_numbers([np.array([1.001], np.float16)], [np.array([1], np.float16)])
    with pytest.raises(AssertionError):
        assert_same_numbers([np.array([1.1], np.float16)], [np.array([1], np.float16)])
