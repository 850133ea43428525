"""If an output is declared with a wrong shape, the result declares the right shape, with a warning."""

import re
import warnings

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.errors import OrtscanWarning
from ortscan.modelio import load
from ortscan.soundness.output_shapes import contradictory_outputs
from tests.support.text import assert_same_numbers, model_from_text, ort_run

LOOP = """g (float[T,4] x, float[4] h0) => (DECLARED) <int64 zero = {0}, bool yes = {1}> {
    s = Shape (x) n = Gather (s, zero)
    STATE, y = Loop <body = b (int64 i, bool c, float[4] s0) => (bool c1, float[4] s1, float[4] y0) {
        c1 = Identity (c) r = Gather (x, i) t = Tanh (r) a = Mul (s0, t) s1 = Sub (a, t) y0 = Add (s1, t) }> (n, yes, h0) AFTER
}"""


def loop(declared: str, after: str = ""):
    text = LOOP.replace("DECLARED", declared).replace("STATE", "q" if after else "h").replace("AFTER", after)
    return model_from_text(text, 17, check=False)


X = {"x": np.linspace(-1, 1, 20, dtype=np.float32).reshape(5, 4), "h0": np.ones(4, np.float32)}
FIXED = {"target": "coreml", "fix_shapes": {"x": [5, 4]}}


def sizes(info: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_value or dim.dim_param for dim in info.type.tensor_type.shape.dim]


@pytest.mark.parametrize(
    ("declared", "output", "shape"),
    [
        ("float[4,1] h", "h", "[4, 1]"),
        ("float h", "h", "[]"),
        ("float[4,1] h, float[T,4] y", "h", "[4, 1]"),
        ("float[3] h, float[T,4] y", "h", "[3]"),
    ],
)
@pytest.mark.parametrize("options", [{}, FIXED], ids=["free", "fixed"])
def test_a_loop_is_rewritten_although_an_output_is_declared_with_another_shape(declared, output, shape, options):
    model = loop(declared)
    with pytest.warns(OrtscanWarning, match=rf"the model declares shape {re.escape(shape)} for the output '{output}'") as caught:
        after = ortscan.optimize(model, **options)
    assert not [warning for warning in caught if "defect" in str(warning.message)]
    assert "Loop" not in {node.op_type for node in after.graph.node}
    assert_same_numbers(ort_run(after, X), ort_run(model, X))
    for info, result in zip(after.graph.output, ort_run(after, X), strict=True):
        assert [size for size in sizes(info) if isinstance(size, int)] in (list(result.shape), list(result.shape)[1:])


def test_rows_of_a_loop_of_constant_steps_are_declared_as_many_as_they_are():
    text = LOOP.replace("s = Shape (x) n = Gather (s, zero)", "n = Constant <value = int64 {5}> ()")
    text = text.replace("DECLARED", "float[4] h, float[6,4] y").replace("STATE", "h").replace("AFTER", "")
    model = model_from_text(text, 17, check=False)
    with pytest.warns(OrtscanWarning, match=r"declares shape \[6, 4\] for the output 'y', but it has \[5, 4\]"):
        after = ortscan.optimize(model)
    assert sizes(after.graph.output[1]) == [5, 4]
    assert_same_numbers(ort_run(after, X), ort_run(model, X))


def test_an_outer_product_that_onnx_misreads_does_not_hide_a_wrong_declaration():
    text = """g (float[A,3,4] w, float[N,3] x) => (int64[3,2] o, float[N,7] y) <int64[1] at_1 = {1}, int64[1] at_0 = {0}> {
        u = Shape (w) v = Shape (x) p = Unsqueeze (u, at_1) q = Unsqueeze (v, at_0) o = Mul (p, q) y = Neg (x) }"""
    model = model_from_text(text, 18, check=False)
    assert {name: sizes(info) for name, info in contradictory_outputs(load(model), model).items()} == {"y": ["N", 3]}


def test_rows_of_steps_that_are_fixed_are_declared_as_many_as_they_are():
    model = loop("float[4] h, float[T,6] y")
    with pytest.warns(OrtscanWarning, match=r"declares shape \[T, 6\] for the output 'y', but it has \[5, 4\]"):
        after = ortscan.optimize(model, **FIXED)
    assert sizes(after.graph.output[1]) == [5, 4]
    assert_same_numbers(ort_run(after, X), ort_run(model, X))


def test_a_body_that_cannot_run_is_not_called_a_defect_of_the_rewriter():
    model = model_from_text(
        """g (float[5,4] x, float[4] h0) => (float[N] h, float[5,4] y) <int64 n = {5}, bool yes = {1}> {
        h, y = Loop <body = b (int64 i, bool c, float[N] s0) => (bool c1, float[M] s1, float[4] y0) {
            c1 = Identity (c) r = Gather (x, i) t = Tanh (r) a = Mul (s0, t) s1 = Concat <axis = 0> (a, t) y0 = Neg (t) }> (n, yes, h0)
        }""",
        17,
        check=False,
    )
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        ort_run(model, X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ortscan.optimize(model)
    texts = [str(warning.message) for warning in caught]
    assert any("took back unroll" in text and "; the original model fails too: " in text for text in texts)
    assert not [text for text in texts if "defect" in text]


@pytest.mark.parametrize("after", ["h = Relu (q)", "r = Exp (q) h = Neg (r)"])
def test_what_is_made_from_such_a_state_is_rewritten_too(after):
    model = loop("float[4,1] h, float[T,4] y", after)
    with pytest.warns(OrtscanWarning, match=r"declares shape \[4, 1\] for the output 'h', but it has \[4\]"):
        result = ortscan.optimize(model)
    assert "Loop" not in {node.op_type for node in result.graph.node}
    assert_same_numbers(ort_run(result, X), ort_run(model, X))


COMPUTED = """g (float[B,T,4] x) => (DECLARED) <int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}> {
    s = Shape (x) b = Gather (s, i0) t = Gather (s, i1) n = Gather (s, i2) bt = Mul (b, t)
    two = Concat <axis = 0> (bt, n) f = Reshape (x, two) u = Relu (f)
    MADE
}"""
MADE = {
    "reshaped": "all = Concat <axis = 0> (b, t, n) y = Reshape (u, all)",
    "added to": "all = Concat <axis = 0> (b, t, n) v = Reshape (u, all) y = Add (v, x)",
    "made longer": "all = Concat <axis = 0> (i1, bt, n) y = Expand (u, all)",
    "cut": "all = Concat <axis = 0> (b, t, n) v = Reshape (u, all) y = Slice (v, i0, i1, i1)",
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_what_is_asked_for_is_done_and_the_output_has_its_rank(made: str) -> None:
    model = model_from_text(COMPUTED.replace("DECLARED", "float[1,seqlen] y").replace("MADE", made), 12, check=False)
    x = {"x": np.ones((2, 5, 4), np.float32)}
    with pytest.warns(OrtscanWarning, match=r"declares shape \[1, seqlen\] for the output 'y'"):
        results = ortscan.migrate(model, 21), ortscan.optimize(model, fix_shapes={"x": [2, 5, 4]})
    for after in results:
        assert len(after.graph.output[0].type.tensor_type.shape.dim) == 3
        assert_same_numbers(ort_run(after, x), ort_run(model, x))
        onnx.checker.check_model(after, full_check=True)


@pytest.mark.parametrize("declared", ["float[B,T,4] y", "float[?,?,?] y", "float[batch,time,4] y"])
def test_the_right_rank_stays_as_it_is_declared(declared: str) -> None:
    model = model_from_text(COMPUTED.replace("DECLARED", declared).replace("MADE", MADE["reshaped"]), 12, check=False)
    assert ortscan.migrate(model, 21).graph.output[0] == model.graph.output[0]
    assert not [said for said in ortscan.explain(model, opset=21).messages if "declares" in said]


@pytest.mark.parametrize("after", ["h = Relu (q)", "r = Exp (q) h = Neg (r)"])
def test_what_is_made_from_a_state_is_declared_anew_where_something_else_was_asked_for(after: str) -> None:
    model = loop("float[4,1] h, float[T,4] y", after)
    with pytest.warns(OrtscanWarning, match="declares shape"):
        results = ortscan.migrate(model, 21), ortscan.optimize(model, fix_shapes={"x": [5, 4]})
    for result in results:
        assert len(result.graph.output[0].type.tensor_type.shape.dim) == 1
        assert_same_numbers(ort_run(result, X), ort_run(model, X))


def test_the_rank_that_it_has_is_no_reason():
    assert "Loop" not in {node.op_type for node in ortscan.optimize(loop("float[4] h, float[T,4] y")).graph.node}
    assert "Loop" not in {node.op_type for node in ortscan.optimize(loop("float[N] h, float[T,4] y")).graph.node}


@pytest.mark.parametrize("read", ["h", "y", "z = Neg (h)"])
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("way", ["optimize", "migrate"])
def test_the_full_check_accepts_a_result_if_it_accepts_the_original_that_strict_inference_contradicts(way, size, read):
    """Only strict inference follows the sizes of the initial state, and with them those of the state."""
    name = read.split(" =")[0]
    model = model_from_text(
        f"""g (float[3,2] x) => (float[{"3," if name == "y" else ""}{size}] out) <int64[1] one = {{1}}, int64[1] end = {{2}}> {{
        s = Shape (x) n = Slice (s, one, end) h0 = ConstantOfShape (n)
        h, y = Scan <num_scan_inputs = 1, body = b (float[] s, float[] r) => (float[] s1, float[] y1) {{
            k = ReduceSum <keepdims = 0> (r) a = Mul (s, k) t = Tanh (a) s1 = Add (t, s) y1 = Neg (s1) }}> (h0, x) {read if "=" in read else ""} out = Relu ({name}) }}""",
        13,
        check=False,
    )
    onnx.checker.check_model(model, full_check=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        after = (
            ortscan.optimize(model, target="coreml", verify=False)
            if way == "optimize"
            else ortscan.migrate(model, 17, verify=False)
        )
    assert not [warning for warning in caught if "defect" in str(warning.message)]
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": np.ones((3, 2), np.float32)}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


def test_a_size_that_one_branch_alone_tells_is_left_open():
    text = """g (bool c, float[N,2] x) => (float[3,2] y) {
        a = If (c) <then_branch = t () => (float[4,2] u) { u = Constant <value = float[4,2] {1,2,3,4,5,6,7,8}> () },
                    else_branch = e () => (float[N,2] v) { v = Neg (x) }>
        y = Neg (a) }"""
    model = model_from_text(text, 9, check=False)
    contradictions = contradictory_outputs(load(model), model)
    assert [sizes(info) for info in contradictions.values()] == [["", 2]]


def test_a_loop_that_cannot_run_behind_an_if_is_not_called_a_defect_of_the_rewriter():
    model = model_from_text(
        """g (bool c, float[2,2] x, float[1] h) => (float[K] y)
        <int64[1] zero = {0}, int64[1] one = {1}, bool yes = {1}, int64 two = {2}> {
        y = If (c) <then_branch = t () => (float[K] a) {
            a = Loop (two, yes, h) <body = b (int64 i, bool go, float[1] s) => (bool go1, float[N] s1) {
                go1 = Identity (go) at = Unsqueeze (i, zero) to = Add (at, one) rows = Slice (x, at, to, zero)
                row = Squeeze (rows, one) s1 = Add (s, row) }> },
          else_branch = e () => (float[1] b) { b = Neg (h) }> }""",
        18,
        check=False,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ortscan.optimize(model, verify=False, max_unroll=0)
    (text,) = (str(warning.message) for warning in caught)
    assert "; the original model fails too for some inputs: running Squeeze node" in text
    assert "defect" not in text
