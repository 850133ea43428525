"""An If before opset 11 whose branches have different sizes: the sizes of one branch must not count for both."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.text import model_from_text, ort_run

ONE = "= one () => (float[1,3] p) { p = Constant <value = float[1,3] {7,8,9}> () }"
TWO = "= two () => (float[2,3] q) { q = Constant <value = float[2,3] {1,2,3,4,5,6}> () }"
FREE = "= free () => (float[T,3] u) { u = Relu (x) }"
COMPUTED = """= computed () => (float[?,?] v) {
    a = Shape (x) b = Constant <value_ints = [-2, 0]> () d = Constant <value_ints = [2, 1]> () e = Add (a, b) f = Mul (e, d) v = Expand (h, f) }"""
READERS = {
    "Shape": "y = Shape (r)",
    "ConstantOfShape": "s = Shape (r) y = ConstantOfShape (s)",
    "a state that grows": """k = Constant <value_int = 2> () t = Constant <value = bool {1}> () z, n = Loop (k, t, x) <body =
        b (int64 i, bool g, float[?,3] w) => (bool g1, float[?,3] w1, int64[2] m) {
            g1 = Identity (g) m = Shape (r) w1 = Concat <axis = 0> (w, r) }> y = Shape (z)""",
    "a Scan": "y = Scan <num_scan_inputs = 1, body = b (float[3] w) => (int64[2] m) { m = Shape (r) }> (x)",
    "an If around": "y = If (c) <then_branch = t () => (int64[2] n) { n = Shape (r) }, else_branch = e () => (int64[2] m) { m = Shape (r) }>",
}


def _model(then: str, otherwise: str, reader: str) -> onnx.ModelProto:
    kind = "float[?,?] y" if reader == "ConstantOfShape" else "int64[?,?] y" if reader == "a Scan" else "int64[2] y"
    return model_from_text(
        f"""g (bool c, float[T,3] x) => ({kind}) <float h = {{1}}> {{
            r = If (c) <then_branch {then}, else_branch {otherwise}> {READERS[reader]} }}""",
        18,
        check=False,
    )


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("then", "otherwise"), [(ONE, TWO), (ONE, FREE), (FREE, ONE), (TWO, COMPUTED), (COMPUTED, ONE)])
def test_no_size_of_one_branch_is_taken_for_that_of_the_other(then: str, otherwise: str, reader: str) -> None:
    model = _model(then, otherwise, reader)
    for opset in (9, 10):
        for after in (ortscan.migrate(model, opset, verify=False), ortscan.optimize(model, opset=opset, verify=False)):
            for steps in (3, 4):
                for flag in (True, False):
                    feeds = {"c": np.array(flag), "x": np.ones((steps, 3), np.float32)}
                    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


def test_branches_of_the_same_sizes_stay_as_they_are() -> None:
    model = _model(FREE, FREE.replace("Relu", "Neg").replace("u", "w"), "Shape")
    branches = [attribute.g for attribute in ortscan.migrate(model, 9, verify=False).graph.node[0].attribute]
    assert [[node.op_type for node in branch.node] for branch in branches] == [["Relu"], ["Neg"]]


STACK = """= stack () => (float[?,?,?] s) { l, s = Scan <num_scan_inputs = 1, body = b (float[2] h, float[3] w) => (float[2] g, float[1] o) {
    g = Identity (h) k = Constant <value = float[1] {0.5}> () o = Identity (k) }> ("", h, x) }"""
FIXED = "= fixed () => (float[1,1,1] p) { p = Constant <value = float[1,1,1] {7}> () }"


@pytest.mark.parametrize(("then", "otherwise"), [(STACK, FIXED), (FIXED, STACK)])
@pytest.mark.parametrize("opset", [9, 10, 11, 16])
def test_the_stack_of_an_opset_8_scan_is_not_of_the_size_that_the_other_branch_tells(then: str, otherwise: str, opset: int) -> None:
    model = model_from_text(
        f"""g (bool c, float[1,T,3] x, float[1,2] h) => (float[?,?,?] y) {{
            y = If (c) <then_branch {then}, else_branch {otherwise}> }}""",
        8,
        check=False,
    )
    after = ortscan.migrate(model, opset, verify=False)
    for steps in (1, 2, 3):
        for flag in (True, False):
            feeds = {"c": np.array(flag), "x": np.ones((1, steps, 3), np.float32), "h": np.ones((1, 2), np.float32)}
            assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("opset", [9, 10, 11, 18])
def test_a_scan_apart_for_one_step_gives_more_steps_their_size(opset: int) -> None:
    model = model_from_text(
        """g (float[1,T,3] x, float[1,1] h, int64[1] k) => (int64[3] y) {
            r = Expand (h, k) s, z = Scan <num_scan_inputs = 1, body = b ( v, w) => ( n, o) {
                n = Identity (w) o = Identity (n) }> ("", r, x) y = Shape (z) }""",
        8,
        check=False,
    )
    after = ortscan.migrate(model, opset, verify=False)
    feeds = {"x": np.ones((1, 1, 3), np.float32), "h": np.ones((1, 1), np.float32), "k": np.array([1])}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    feeds = feeds | {"x": np.ones((1, 2, 3), np.float32), "k": np.array([3])}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


NESTED = """g (int64[k] k, float[B,3] h, float[B,T,3] x, float[1,N,4] z, int64[B] n) => (float[B,3] y) <float[1,1] one = {1}, int64[1] two = {2}> {
    y, v = Scan <num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] s1, float[p,q] o) {
        c = Concat <axis = 0> (k, two) w = Expand (one, c)
        o = Scan <num_scan_inputs = 1, body = a (t, d) => (t1) { d0, d1 = Split (d) t1 = Concat <axis = 0> (d1, d0) }> ("", w, z)
        s1 = Tanh (e) }> (n, h, x) }"""


@pytest.mark.parametrize("opset", [9, 10, 11, 18])
def test_a_scan_apart_for_one_step_keeps_its_rank_in_another(opset: int) -> None:
    model = model_from_text(NESTED, 8, check=False)
    feeds = {"k": np.array([1]), "h": np.ones((1, 3)), "x": np.ones((1, 2, 3)), "z": np.ones((1, 1, 4)), "n": np.array([2])}
    feeds = {name: array.astype(np.float32 if array.dtype.kind == "f" else np.int64) for name, array in feeds.items()}
    assert_same_numbers(ort_run(ortscan.migrate(model, opset, verify=False), feeds), ort_run(model, feeds))
