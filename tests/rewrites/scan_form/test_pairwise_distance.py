"""Rows compared with all rows of a matrix: both forms, each way to write the sum, and everything that only looks like it."""

import numpy as np
import onnx
import pytest

from rewrites.cleanup import dead_code, fold_constants, unused_scan_inputs
from rewrites.graph.context import Options
from rewrites.registry import RULES
from rewrites.scan_form import pairwise_distance
from tests.rewrites.apply import apply, patches, read, reasons
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import becomes
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal

CDIST = Options(fast_math=True)
MATRIX = Options(fast_math=True, domains=frozenset())
PLAIN = "s = Sub (y, a) r = ReduceSumSquare <keepdims = 0> (s, one)"


def distances(
    inside: str = PLAIN,
    *,
    kind: str = "float",
    xs: str = "[5,4]",
    ys: str = "[6,4]",
    row: str = "[4]",
    result: str = "[6]",
    out: str = "[5,6]",
    attributes: str = "",
    weights: str = "int64[1] one = {1}",
) -> str:
    body = f"b ({kind}{row} a) => ({kind}{result} r) {{ {inside} }}"
    return f"""g ({kind}{xs} x, {kind}{ys} y) => ({kind}{out} d) <{weights}, {kind} two = {{2}}, int64[1] front = {{0}}> {{
        d = Scan <num_scan_inputs = 1, body = {body}{attributes}> (x) }}"""


CLEAN = [pairwise_distance, dead_code, unused_scan_inputs]
LEFT = "d = Scan <num_scan_inputs = 1, body = b (r_in) => (r) { r = Identity (r_in) }> (all) }"


def test_with_com_microsoft_it_is_one_operator() -> None:
    after, _ = becomes(CLEAN, distances(), options=CDIST)
    assert_text_equal(
        after,
        """<ir_version: 10, opset_import: ["": 18, "com.microsoft": 1]>
        g (float[5,4] x, float[6,4] y) => (float[5,6] d) {
            all = com.microsoft.CDist <metric = "sqeuclidean"> (x, y) """
        + LEFT,
    )


@pytest.mark.parametrize("opset", [9, 13, 18, 25])
def test_with_standard_operators_it_is_one_matrix_product(opset: int) -> None:
    inside = PLAIN if opset >= 18 else "s = Sub (y, a) r = ReduceSumSquare <axes = [1], keepdims = 0> (s)"
    after, _ = becomes(CLEAN, distances(inside), options=MATRIX, opset=opset)
    assert sorted(node.op_type for node in after.graph.node) == sorted(
        ["ReduceSumSquare", "ReduceSumSquare", "Add", "Transpose", "MatMul", "Mul", "Sub", "Max", "Scan"]
    )
    assert [opset.domain for opset in after.opset_import] == [""]


@pytest.mark.parametrize("options", [CDIST, MATRIX], ids=["cdist", "matrix"])
@pytest.mark.parametrize("kind", ["float", "double"])
def test_all_rules_leave_no_loop(kind: str, options: Options) -> None:
    text = distances(kind=kind)
    after, _ = apply(text, RULES, options=options, feeds=data(read(text)))
    assert "Scan" not in [node.op_type for node in after.graph.node]


WAYS = {
    "the other way round": "s = Sub (a, y) r = ReduceSumSquare <keepdims = 0> (s, one)",
    "a product": "s = Sub (y, a) p = Mul (s, s) r = ReduceSum <keepdims = 0> (p, one)",
    "a power": "s = Sub (y, a) p = Pow (s, two) r = ReduceSum <keepdims = 0> (p, one)",
    "the last axis": "m = Constant <value_ints = [-1]> () s = Sub (y, a) r = ReduceSumSquare <keepdims = 0> (s, m)",
    "a row of rank 2": "u = Unsqueeze (a, front) s = Sub (u, y) r = ReduceSumSquare <keepdims = 0> (s, one)",
}


@pytest.mark.parametrize("options", [CDIST, MATRIX], ids=["cdist", "matrix"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_write_it_is_seen(way: str, options: Options) -> None:
    text = distances(WAYS[way])
    _, report = apply(text, [fold_constants, *CLEAN], options=options, feeds=data(read(text)))
    assert "pairwise-distance" in patches(report)


@pytest.mark.parametrize("enter", [0, 1])
@pytest.mark.parametrize("leave", [0, 1])
def test_directions_are_kept(enter: int, leave: int) -> None:
    text = distances(attributes=f", scan_input_directions = [{enter}], scan_output_directions = [{leave}]")
    becomes(CLEAN, text, options=CDIST)
    becomes(CLEAN, text, options=MATRIX)


@pytest.mark.parametrize("rows", [0, 1, 6])
def test_sizes_may_be_symbols_and_small(rows: int) -> None:
    text = distances(xs="[T,4]", ys="[N,4]", result="[N]", out="[T,N]")
    becomes(CLEAN, text, options=CDIST, T=3, N=rows)
    becomes(CLEAN, text, options=MATRIX, T=3, N=rows)


def test_other_work_on_the_distances_stays() -> None:
    text = distances("s = Sub (y, a) q = ReduceSumSquare <keepdims = 0> (s, one) e = Sqrt (q) r = Mul (e, q)")
    after, _ = becomes(CLEAN, text, options=CDIST)
    assert [node.op_type for node in after.graph.node] == ["CDist", "Scan"]


def test_the_distance_of_equal_points_is_not_negative() -> None:
    text = distances()
    point = np.array([1000.3, 1e-3, -7.77, 3e3], np.float32)
    feeds = {"x": np.tile(point, (5, 1)), "y": np.tile(point, (6, 1))}
    for options in (CDIST, MATRIX):
        after, _ = apply(text, RULES, options=options)
        assert (ort_run(after, feeds)[0] >= 0).all()


def test_without_fast_math_the_report_says_that_it_would_help() -> None:
    after, report = apply(distances(), [pairwise_distance])
    assert patches(report) == []
    assert [(reason.code, reason.detail) for reason in report.loops[0].reasons] == [
        ("FAST-MATH", "'r' is a pairwise distance, which --fast-math makes one operator")
    ]
    assert [node.op_type for node in after.graph.node] == ["Scan"]


def test_without_fast_math_every_bit_stays() -> None:
    text = distances()
    model = read(text)
    after, _ = apply(model, RULES)
    assert "MatMul" not in [node.op_type for node in after.graph.node]
    assert_same_numbers(ort_run(after, data(model)), ort_run(model, data(model)), rtol=0, atol=0)


OTHERS = {
    "kept axes": distances("s = Sub (y, a) t = ReduceSumSquare (s, one) r = Squeeze (t, one)"),
    "the other axis": distances(
        "s = Sub (y, a) r = ReduceSumSquare <keepdims = 0> (s, one)", weights="int64[1] one = {0}", result="[4]", out="[5,4]"
    ),
    "both axes": distances(
        "s = Sub (y, a) r = ReduceSumSquare <keepdims = 0> (s, one)", weights="int64[2] one = {0, 1}", result="", out="[5]"
    ),
    "a sum, not a difference": distances("s = Add (y, a) r = ReduceSumSquare <keepdims = 0> (s, one)"),
    "a cube": distances("k = Constant <value_float = 3.0> () s = Sub (y, a) p = Pow (s, k) r = ReduceSum <keepdims = 0> (p, one)"),
    "a product of two": distances("s = Sub (y, a) q = Add (y, a) p = Mul (s, q) r = ReduceSum <keepdims = 0> (p, one)"),
    "absolute differences": distances("s = Sub (y, a) p = Abs (s) r = ReduceSum <keepdims = 0> (p, one)"),
    "a mean": distances("s = Sub (y, a) p = Mul (s, s) r = ReduceMean <keepdims = 0> (p, one)"),
    "float16": distances(kind="float16"),
    "int32": distances(kind="int32"),
    "a row that is stretched": distances(xs="[5,1]", row="[1]"),
    "a matrix that is stretched": distances(ys="[6,1]"),
    "a width that is not known": distances(xs="[5,D]", ys="[6,D]", row="[D]"),
    "both rows of the step": distances(
        "s = Sub (a, a) u = Unsqueeze (s, front) r = ReduceSumSquare <keepdims = 0> (u, one)", result="[1]", out="[5,1]"
    ),
    "a row that is changed first": distances("e = Neg (a) s = Sub (y, e) r = ReduceSumSquare <keepdims = 0> (s, one)"),
    "another axis scanned": distances(xs="[4,5]", attributes=", scan_input_axes = [1]"),
    "a column": distances(
        "u = Unsqueeze (a, one) s = Sub (y, u) r = ReduceSumSquare <keepdims = 0> (s, one)", xs="[5,6]", row="[6]"
    ),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_only_looks_like_it_stays(case: str) -> None:
    for options in (CDIST, MATRIX):
        _, report = apply(OTHERS[case], [pairwise_distance], options=options)
        assert patches(report) == []
        assert reasons(report) == []


def test_a_state_is_not_a_scanned_row() -> None:
    text = """g (float[4] h0, float[5,4] x, float[6,4] y) => (float[4] h, float[5,6] d) <int64[1] one = {1}> {
        h, d = Scan <num_scan_inputs = 1, body = b (float[4] a, float[4] e) => (float[4] f, float[6] r) {
            f = Add (a, e)  s = Sub (y, a)  r = ReduceSumSquare <keepdims = 0> (s, one)
        }> (h0, x) }"""
    assert patches(apply(text, [pairwise_distance], options=CDIST)[1]) == []
    text = text.replace("Sub (y, a)", "Sub (y, e)")
    becomes([pairwise_distance], text, options=CDIST)


def test_a_matrix_made_in_the_body_stays() -> None:
    text = distances("w = Mul (y, a) s = Sub (w, a) r = ReduceSumSquare <keepdims = 0> (s, one)")
    assert patches(apply(text, [pairwise_distance], options=CDIST)[1]) == []


def test_an_operator_of_another_domain_is_not_what_its_name_says() -> None:
    text = """<ir_version: 10, opset_import: ["": 18, "odd": 1]>
        g (float[5,4] x, float[6,4] y) => (float[5,6] d) <int64[1] one = {1}> {
            d = Scan <num_scan_inputs = 1, body = b (float[4] a) => (float[6] r) {
                s = Sub (y, a)  p = odd.Mul (s, s)  r = ReduceSum <keepdims = 0> (p, one)
            }> (x) }"""
    model = onnx.parser.parse_model(text)
    assert patches(apply(model, [pairwise_distance], options=CDIST, check=False)[1]) == []
