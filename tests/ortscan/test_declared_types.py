"""Missing or contradictory declarations of values are corrected, so that onnxruntime and onnx accept the result."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text


def sound(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return ``proto`` after onnx's strictest inference accepted it."""
    onnx.checker.check_model(proto, full_check=True)
    onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True, data_prop=True)
    return proto


def loop_body(proto: onnx.ModelProto) -> onnx.GraphProto:
    (loop,) = [node for node in proto.graph.node if node.op_type == "Loop"]
    return next(attribute.g for attribute in loop.attribute if attribute.name == "body")


LOOP = """<ir_version: 8, opset_import: ["": {opset}]>
g (int64 m, float[2] s, float[5,2] xs) => (float[2] z, {kind}[N] cs) {{
    z, cs = Loop <body = b (int64 i, {cond} c, float[2] h) => ({out} c, float[2] h1, {kind} {again}) {{
        x = Gather (xs, i) h1 = Add (h, x) {more}
    }}> (m, {given}, s) }}"""


@pytest.mark.long
@pytest.mark.parametrize(("opset", "given"), [(9, ""), (11, ""), (13, "go"), (16, ""), (16, "go")])
@pytest.mark.parametrize("target", [16, 18, 21])
@pytest.mark.parametrize("again", ["c", "i", "n"])
def test_an_input_that_a_body_returns_untyped_keeps_its_type(opset, given, target, again):
    more = "n = Identity (c)" if again == "n" else ""
    text = LOOP.format(
        opset=opset, cond="bool", out="", kind="int64" if again == "i" else "bool", again=again, more=more, given=given
    )
    model = model_from_text(text.replace("(int64 m,", "(int64 m, bool go,") if given else text, check=False)
    body = loop_body(model)
    for value in body.output:
        if value.name in (body.input[0].name, body.input[1].name):
            value.ClearField("type")
    feeds = {"m": np.array(3), "s": np.ones(2, np.float32), "xs": np.arange(10, dtype=np.float32).reshape(5, 2)}
    feeds |= {"go": np.array(True)} if given else {}
    wanted = ort_run(model, feeds)
    compared = slice(1 if again == "i" else None)  # onnxruntime stacks the last number three times of an ``i`` returned itself
    for after in (ortscan.migrate(model, target, verify=False), ortscan.optimize(model, verify=False)):
        assert_same_numbers(ort_run(sound(after) if after != model else after, feeds)[compared], wanted[compared])


def test_a_rank_said_of_the_input_counts_where_the_output_says_none():
    model = model_from_text(LOOP.format(opset=16, cond="bool", out="", kind="bool", again="c", more="", given=""), check=False)
    for value in (loop_body(model).output[0], loop_body(model).output[2]):
        value.CopyFrom(onnx.helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, None))
    body = loop_body(ortscan.migrate(model, 21))
    assert body.input[1].type.tensor_type.HasField("shape")
    assert not body.input[1].type.tensor_type.shape.dim


BODIES = """<ir_version: 8, opset_import: ["": 18]>
g (float[5,3] xs, float[4,1,3] zs, float[2] s) => (float[2] u, float[5,K] us, float[4,L] vs) {{
    u, us = Scan <num_scan_inputs = 1, body = one (float[2] h, float[3] x) => (float[2] h1, float[K] y) {{
        a = Constant <value_ints = [-1]> () {one} h1 = Sigmoid (h) y = Tanh (r)
    }}> (s, xs)
    vs = Scan <num_scan_inputs = 1, body = two (float[1,3] x) => (float[L] y) {{
        {two} f = Constant <value_ints = [-1]> () y = Reshape (r, f)
    }}> (zs) }}"""


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("n = Shape (x) r = Reshape (x, a)", "n = Shape (x) r = Reshape (x, n)"),
        ("n = Shape (x) r = Reshape (x, n)", "n = Shape (x) r = Expand (x, n)"),
        ("n = Constant <value_ints = [3, 1, 1]> () q = Reshape (x, n) r = Reshape (q, a)", "n = Shape (x) r = ConstantOfShape (n)"),
        ("m = Shape (x) n = Concat <axis = 0> (m, a) q = Reshape (x, n) r = Reshape (q, a)", "n = Shape (x) r = Reshape (x, n)"),
    ],
)
def test_bodies_that_use_the_same_names_have_shapes_of_their_own(one, two):
    model = model_from_text(BODIES.format(one=one, two=two), check=False)
    feeds = {"xs": np.arange(15, dtype=np.float32).reshape(5, 3), "zs": np.ones((4, 1, 3), np.float32), "s": np.ones(2, np.float32)}
    wanted = ort_run(model, feeds)
    for after in (
        ortscan.optimize(model, verify=False),
        ortscan.optimize(model, passes=["dead-code"], opset=19, verify=False),
        ortscan.migrate(model, 21, verify=False),
    ):
        assert_same_numbers(ort_run(sound(after), feeds), wanted)


CUT = """<ir_version: 8, opset_import: ["": 13]>
g (float[5,3] xs, float[3,3] z) => (float[5,3,3] ys) <int64[1] one = {1}, int64[1] far = {9223372036854775807}, int64[1] zero = {0}> {
    ys = Scan <num_scan_inputs = 1, body = b (float[3] x) => (float[3,3] y) <WEIGHTS> {
        n = Shape (z) k = Slice (n, START, far, zero) u = Shape (x) j = Concat <axis = 0> (u, k) r = Expand (x, j) y = Add (r, z) }> (xs) }"""


@pytest.mark.parametrize(("start", "weights"), [("one", ""), ("start", "int64[1] start = {1}")])
def test_bounds_of_a_cut_in_a_body_are_known_there(start, weights):
    model = model_from_text(CUT.replace("START", start).replace("<WEIGHTS>", f"<{weights}>" if weights else ""), check=False)
    feeds = {"xs": np.arange(15, dtype=np.float32).reshape(5, 3), "z": np.ones((3, 3), np.float32)}
    wanted = ort_run(model, feeds)
    for after in (
        ortscan.migrate(model, 18, verify=False),
        ortscan.optimize(model, passes=["dead-code"], verify=False),
        ortscan.optimize(model, verify=False),
    ):
        assert_same_numbers(ort_run(sound(after), feeds), wanted)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("more", ["c = Identity (b)", "c = Cast <to = 1> (b)"])
def test_products_of_vectors_of_unlike_length_pass_the_data_propagation_of_onnx(op, more):
    model = model_from_text(f"""<ir_version: 6, opset_import: ["": 11]> g (float[3] a, float[T,2] bs) => (float[T,3,2] ys) {{
        ys = Scan <num_scan_inputs = 1, body = q (float[2] b) => (float[3,2] y) {{
            {more} u = Unsqueeze <axes = [1]> (a) w = Unsqueeze <axes = [0]> (c) y = {op} (u, w) }}> (bs) }}""")
    feeds = {"a": np.arange(3, dtype=np.float32), "bs": np.arange(8, dtype=np.float32).reshape(4, 2)}
    wanted = ort_run(model, feeds)
    for after in (
        ortscan.migrate(model, 14, verify=False),
        ortscan.migrate(model, 21, verify=False),
        ortscan.optimize(model, verify=False),
    ):
        assert_same_numbers(ort_run(sound(after), feeds), wanted)
