import json

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.errors import OptionError
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

RECURRENT = """g (float[T, B, 2] xs, float[B, 2] h0) => (float[B, 2] hT, float[N, B, 2] ys) {
    hT, ys = Scan <num_scan_inputs = 1, body = b (float[B, 2] h, float[B, 2] x) => (float[B, 2] h1, float[B, 2] y) {
        a = Mul (h, x) h1 = Tanh (a) y = Identity (h1) }> (h0, xs) }"""


def read(text: str = RECURRENT) -> onnx.ModelProto:
    return model_from_text(text, 18, check=False)


def dims(model: onnx.ModelProto) -> dict[str, list[int | str]]:
    public = [*model.graph.input, *model.graph.output]
    return {
        info.name: [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in info.type.tensor_type.shape.dim]
        for info in public
    }


def feeds(steps: int = 4, batch: int = 3) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(1).standard_normal
    return {"xs": draw((steps, batch, 2)).astype(np.float32), "h0": draw((batch, 2)).astype(np.float32)}


def test_sizes_are_built_in_wherever_their_names_are_and_outputs_follow():
    before = read()
    after = ortscan.optimize(before, fix_shapes={"xs": [4, 3, 2]}, verify=True)
    assert dims(after) == {"xs": [4, 3, 2], "h0": [3, 2], "hT": [3, 2], "ys": [4, 3, 2]}
    assert before == read()
    assert_same_numbers(ort_run(after, feeds()), ort_run(before, feeds()))


def test_without_them_the_interface_stays_as_it_was():
    assert dims(ortscan.optimize(read())) == dims(read())


def test_sizes_left_out_stay_free():
    after = ortscan.optimize(read(), fix_shapes={"xs": [4, None, 2]}, target="coreml", verify=True)
    assert dims(after) == {"xs": [4, "B", 2], "h0": ["B", 2], "hT": ["B", 2], "ys": [4, "B", 2]}
    assert "Scan" not in {node.op_type for node in after.graph.node}
    for batch in (1, 5):
        assert_same_numbers(ort_run(after, feeds(4, batch)), ort_run(read(), feeds(4, batch)))


def test_an_input_without_a_declared_shape_gets_one():
    text = "g (float x) => (float y) { y = Tanh (x) }"
    model = read(text)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert dims(ortscan.optimize(model, fix_shapes={"x": [2, 3]})) == {"x": [2, 3], "y": [2, 3]}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"z": [1]}, "no input 'z'"),
        ({"xs": [4, 3]}, "'xs' has 3 dimensions, not 2"),
        ({"xs": [4, 3, 5]}, "dimension 2 of 'xs' is 2, not 5"),
        (
            {"xs": [4, 3, 2], "h0": [7, 2]},
            "dimension 'B' would be 3 and 7.*rename one of them, as in dimension 0 of the input 'h0'",
        ),
    ],
)
@pytest.mark.parametrize("call", [ortscan.optimize, ortscan.explain])
def test_sizes_that_cannot_be_are_refused_by_name(call, shapes, message):
    with pytest.raises(OptionError, match=message):
        call(read(), fix_shapes=shapes)


def test_an_input_that_is_no_tensor_is_refused():
    text = "g (seq(float[2]) q) => (int64 n) { n = SequenceLength (q) }"
    with pytest.raises(OptionError, match="'q' is no tensor"):
        ortscan.optimize(read(text), fix_shapes={"q": [2]})


def test_what_only_sizes_decide_becomes_constant():
    text = """g (float[T, 2] x) => (float[M, 2] y) <int64 two = {2}, int64 zero = {0}, bool t = {1}> {
        s = Shape (x) n = Gather (s, zero) p = Less (n, two)
        y = If <then_branch = a () => (float[M, 2] u) { u = Neg (x) }, else_branch = b () => (float[M, 2] v) {
            v = Loop <body = c (int64 i, bool d, float[T, 2] h) => (bool d1, float[T, 2] h1) {
                d1 = Identity (d) k = Cast <to = 1> (i) e = Add (h, k) h1 = Tanh (e) }> (n, t, x) }> (p) }"""
    model = read(text)
    x = np.ones((3, 2), np.float32)
    after = ortscan.optimize(model, fix_shapes={"x": [3, 2]}, target="coreml", verify=True)
    assert {node.op_type for node in after.graph.node} <= {"Add", "Tanh"}
    assert_same_numbers(ort_run(after, {"x": x}), ort_run(model, {"x": x}))


def test_a_model_without_loops_gets_its_sizes_too():
    after = ortscan.optimize(read("g (float[N, 2] x) => (float[N, 2] y) { y = Tanh (x) }"), fix_shapes={"x": [5, 2]})
    assert dims(after) == {"x": [5, 2], "y": [5, 2]}


def test_a_declared_inner_size_that_is_wrong_does_no_harm():
    model = read("g (float[N, 2] x) => (float[K, 2] y) <int64[1] k = {0}> { z = Concat <axis = 0> (x, x) y = Tanh (z) }")
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["N", 2]))
    assert dims(ortscan.optimize(model, fix_shapes={"x": [5, 2]}))["y"] == [10, 2]


def test_an_opset_8_scan_gets_its_sizes_after_it_is_lifted():
    model = parsed(
        """<ir_version: 4, opset_import: ["": 8]> g (float[B, T, 2] xs, float[B, 2] h0) => (float[B, 2] hT) {
        hT = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h1) { a = Add (h, x) h1 = Tanh (a) }> (, h0, xs) }"""
    )
    after = ortscan.optimize(model, fix_shapes={"xs": [2, 3, 2]}, target="nnapi", verify=True)
    assert dims(after) == {"xs": [2, 3, 2], "h0": [2, 2], "hT": [2, 2]}
    assert "Scan" not in {node.op_type for node in after.graph.node}


def test_the_command_line_takes_them_and_says_what_is_built_in(tmp_path, capsys):
    source, out = tmp_path / "a.onnx", tmp_path / "b.onnx"
    onnx.save(read(), source)
    options = ["--fix-shape", "xs:4,3,2", "--fix-shape", "h0:3,2", "--target", "coreml"]
    assert main(["optimize", str(source), str(out), *options]) == 0
    assert "built in: xs is [4, 3, 2]" in capsys.readouterr().out
    assert dims(onnx.load(out))["ys"] == [4, 3, 2]
    assert main(["explain", str(source), *options, "--max-unroll", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["fixed"]


@pytest.mark.parametrize("options", [["--fix-shape", "xs"], ["--max-unroll", "few"], ["--fix-shape", "xs:4"]])
def test_the_command_line_refuses_what_makes_no_sense(options, tmp_path, capsys):
    source = tmp_path / "a.onnx"
    onnx.save(read(), source)
    try:
        code = main(["explain", str(source), *options])
    except SystemExit as error:
        code = int(error.code or 0)
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("rows", [2, None])
@pytest.mark.parametrize(("width", "rate"), [(6, 16), (4, 8)])
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("p = MatMul (x, a)", "q = MatMul (x, c)"),
        ("u = Add (x, d) p = MatMul (u, a)", "v = Neg (x) q = Gemm (v, c)"),
        (
            "p = If (flag) <then_branch = ta () => (float[?,3] p1) { p1 = MatMul (x, a) }, else_branch = ea () => (float[?,3] p2) { r = MatMul (x, a) p2 = Neg (r) }>",
            "q = MatMul (x, c)",
        ),
    ],
)
def test_a_branch_that_is_for_other_sizes_stays_where_some_are_free_and_some_are_not(wide, narrow, width, rate, rows):
    weights = ", ".join(["0.5"] * 18)
    model = model_from_text(
        f"""g (float[B,N] x, int64 rate, bool flag) => (float[?,3] y)
            <int64 k = {{16}}, float[6,3] a = {{{weights}}}, float[4,3] c = {{{weights[: 12 * 5 - 2]}}}, float[6] d = {{1,2,3,4,5,6}}> {{
            is = Equal (rate, k) r = If (is) <then_branch = t () => (float[?,3] p) {{ {wide} }}, else_branch = e () => (float[?,3] q) {{ {narrow} }}>
            s = Scan <num_scan_inputs = 1, body = b (float[3] v) => (float[3] w) {{ w = Softmax <axis = 0> (v) }}> (r) y = Tanh (s) }}""",
        18,
        check=False,
    )
    after = ortscan.optimize(model, fix_shapes={"x": [rows, width]}, verify=False)
    feeds = {"x": np.ones((2, width), np.float32), "rate": np.array(rate), "flag": np.array(True)}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


FRAMES = """g (float[N] x) => (float[F,400] y) <int64[1] zero = {0}, int64 width = {400}, int64 hop = {160}, int64 one = {1}, bool go = {1}> {
    s = Shape (x) t = Squeeze (s, zero) u = Sub (t, width) v = Div (u, hop) n = Add (v, one)
    y = Loop <body = b (int64 i, bool c) => (bool d, float[400] row) {
        d = Identity (c) p = Mul (i, hop) q = Add (p, width) from = Unsqueeze (p, zero) to = Unsqueeze (q, zero)
        f = Slice (x, from, to) k = Constant <value_ints = [400]> () row = Reshape (f, k) }> (n, go) }"""


@pytest.mark.parametrize("call", [ortscan.optimize, lambda model: ortscan.migrate(model, 20)])
def test_a_model_that_runs_only_at_large_sizes_is_told_to_be_given_shapes(call):
    with pytest.warns(ortscan.OrtscanWarning, match=r"not verified: .*pass shapes to ortscan\.verify"):
        call(read(FRAMES))
    model = read(FRAMES)
    assert ortscan.verify(model, ortscan.migrate(model, 20, verify=False), shapes={"x": [800]}).ok
