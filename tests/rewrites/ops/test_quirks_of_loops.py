"""What is wrong with onnxruntime's Scan, Loop and If is still wrong."""

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto

from tests.support.quirks import dies, fate_of, gives, model, ones, refuses, run, shows, unwritten

ONE = np.array(1, np.float32)
SCAN = """g (float[2] h, float[T,2] x) => (float[2] l, float[K,2] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (OUTPUTS) { n = Add (s, e) o = Tanh (n) }> (h, x) }"""
LOOP = """g (int64 m, float h) => (float l, int64[K] k) {
    l, k = Loop <body = b (int64 i, bool c, float s) => (bool c1, float t, int64 r) { c1 = Identity (c) t = Neg (s) r = Identity (i) }> (m, , h) }"""
OLD = """g (float[B,4] h, float[B,T,4] x, int64[B] lengths) => (float[B,4] l, float[B,T,4] y) {
    l, y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] n, float[4] o) { n = Add (s, e) o = Tanh (n) }> (GIVEN, h, x) }"""


def scan(outputs: str = "float[2] n, float[2] o") -> ModelProto:
    return model(SCAN.replace("OUTPUTS", outputs))


def same(found: list[np.ndarray], wanted: list[list[float]]) -> bool:
    return all(np.allclose(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize(
    ("outputs", "rows"),
    [
        ("float[2] n, float[2] n", [[2, 2], [3, 3], [4, 4]]),
        ("float[2] n, float[2] e", [[1, 1], [1, 1], [1, 1]]),
        ("float[2] n, float[2] s", [[1, 1], [2, 2], [3, 3]]),
    ],
)
@shows("ORT-SCAN-SHARED-OUTPUT")
def test_a_scan_body_returns_a_value_twice_or_an_input(outputs: str, rows: list[list[float]]) -> bool:
    return not same(gives(scan(outputs), {"h": ones(2), "x": ones(3, 2)}), [[4, 4], rows])


@shows("ORT-LOOP-STEP-NUMBER")
def test_a_loop_returns_its_step_number() -> bool:
    proto = model(LOOP.replace("int64 r)", "int64 i)").replace("r = Identity (i)", ""))
    assert gives(model(LOOP), {"m": np.array(4), "h": ONE})[1].tolist() == [0, 1, 2, 3]
    return gives(proto, {"m": np.array(4), "h": ONE})[1].tolist() != [0, 1, 2, 3]


@shows("ORT-SCAN-CHANGING-STATE")
def test_the_state_of_a_scan_grows() -> bool:
    text = """g (float[H] h, float[T,1] x) => (float[?] l) {
        l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[1] e) => (float[M] n) { n = Concat <axis = 0> (s, e) }> (h, x) }"""
    return refuses(model(text), {"h": ones(2), "x": ones(3, 1)}, "Concat")


@shows("ORT-SCAN-NO-STEPS")
def test_a_scan_has_no_steps() -> bool:
    return refuses(scan(), {"h": ones(2), "x": ones(0, 2)}, "dim0_offset < dim0_size")


@pytest.mark.parametrize(
    ("axes", "given", "shape"),
    [("scan_input_axes = [1]", "float[B]", (3, 0)), ("scan_output_axes = [1]", "float[B]", (5, 0))],
    ids=["no steps, read across", "no elements, written across"],
)
@shows("ORT-SCAN-MOVED-AXES")
def test_a_scanned_axis_of_nothing_is_moved(axes: str, given: str, shape: tuple[int, int]) -> bool:
    text = f"g (float[A,C] x) => (float[?,?] y) {{ y = Scan <num_scan_inputs = 1, {axes}, body = b ({given} e) => ({given} o) {{ o = Tanh (e) }}> (x) }}"
    return dies(model(text), {"x": ones(*shape)})


@shows("ORT-SCAN-8-NOTHING")
def test_an_opset_8_scan_has_no_steps() -> bool:
    text = OLD.replace("GIVEN", "").replace(", int64[B] lengths", "")
    return unwritten(model(text, 8), {"h": ones(1000, 4), "x": ones(1000, 0, 4)}) == {0}


@shows("ORT-SCAN-8-NOTHING")
def test_an_opset_8_scan_has_no_rows() -> bool:
    text = """g (float[B,T,?] x) => (float[?,?,?] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[?] e) => (float[?] o) { o = Tanh (e) }> (, x) }"""
    fate = fate_of(run, model(text, 8).SerializeToString(), {"x": ones(0, 3, 4)})
    return fate.died or fate.result == [None]


@shows("ORT-SCAN-8-LENGTH-0")
def test_a_row_of_an_opset_8_scan_has_length_0() -> bool:
    feeds = {"h": ones(2, 4), "x": ones(2, 3, 4), "lengths": np.array([0, 2])}
    return refuses(model(OLD.replace("GIVEN", "lengths"), 8), feeds, "Invalid entries in sequence_lens")


@shows("ORT-SCAN-STATE-RANK")
def test_a_state_has_another_rank_than_the_body_says() -> bool:
    text = """g (float[K] x, int64[J] u, float[L] h, int64[I] v) => (float[] l) {
        r = Reshape (x, u) p = Reshape (h, v)
        l = Scan <num_scan_inputs = 1, body = b (float[N] s, float[N] e) => (float[N] o) { o = Add (s, e) }> (p, r) }"""
    return dies(model(text), {"x": ones(12), "u": np.array([3, 2, 2]), "h": ones(4), "v": np.array([2, 2])})


@shows("ORT-LOOP-UNNAMED-RESULT")
def test_a_result_of_a_loop_has_no_name() -> bool:
    proto = model(LOOP)
    proto.graph.node[0].output[0] = ""
    del proto.graph.output[0]
    return dies(proto, {"m": np.array(4), "h": ONE})


@shows("ORT-SCAN-UNNAMED-RESULT")
def test_a_result_of_a_scan_has_no_name() -> bool:
    proto = scan()
    proto.graph.node[0].output[0] = ""
    del proto.graph.output[0]
    return refuses(proto, {"h": ones(2), "x": ones(3, 2)}, "FindDeviceForValue")


@shows("ORT-LOOP-EMPTY-COUNT")
def test_the_count_of_a_loop_is_a_constant_without_elements() -> bool:
    text = """g (float[2] x) => (float[2] y) { none = Constant <value = int64[0] {}> ()
        y = Loop (none, , x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] o) { d = Identity (c) o = Neg (s) }> }"""
    return dies(model(text), {"x": ones(2)})


@shows("ORT-LOOP-EMPTY-CONDITION")
def test_a_condition_has_no_elements() -> bool:
    text = """g (int64 m, bool[K] k, float h) => (float l) {
        l = Loop (m, , h) <body = b (int64 i, bool c, float s) => (bool[J] d, float t) { d = Identity (k) t = Neg (s) }> }"""
    fate = fate_of(run, model(text).SerializeToString(), {"m": np.array(3), "k": np.zeros(0, bool), "h": ONE})
    return fate.died or not isinstance(fate.result, str)


@shows("ORT-LOOP-STACKED-STRINGS")
def test_a_loop_stacks_strings_that_are_also_elsewhere() -> bool:
    text = """g (string[2] x, bool t, int64 m) => (string[N,2] y) {
        y = Loop (m, t) <body = b (int64 i, bool c) => (bool d, string[2] s) { d = Identity (c) s = Identity (x) }> }"""
    words = np.array(["a", "a word that is longer than others"], object)
    (found,) = gives(model(text), {"x": words, "t": np.array(True), "m": np.array(3)})
    return found.tolist() == [words.tolist(), ["", ""], ["", ""]]


@shows("ORT-LOOP-NO-STEPS-SIZES")
def test_a_loop_without_steps_stacks_what_has_a_size() -> bool:
    text = """g (int64 m, float[J] h) => (float[K,?] y) {
        l, y = Loop (m, , h) <body = b (int64 i, bool c, float[J] s) => (bool d, float[J] t, float[?] u) { d = Identity (c) t = Neg (s) u = Neg (s) }> }"""
    return gives(model(text), {"m": np.array(0), "h": ones(3)})[0].shape == (0, 0)


@shows("ORT-INNER-NAMES")
def test_a_body_has_a_name_of_the_graph_around() -> bool:
    text = """g (float[2] x, int64 m) => (float[2] z) { q = Neg (x)
        y = Loop (m, , x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) { d = Identity (c) q = Abs (s) t = Neg (q) }> z = Add (q, y) }"""
    return refuses(model(text), {"x": ones(2), "m": np.array(2)}, "'q' has been used")


@shows("ORT-LOOP-UNDECLARED-INPUTS")
def test_a_loop_body_does_not_say_what_its_step_number_is() -> bool:
    proto = model(LOOP)
    for info in proto.graph.node[0].attribute[0].g.input[:2]:
        info.ClearField("type")
    return refuses(proto, {"m": np.array(4), "h": ONE}, "does not have type information")


@shows("ORT-SCAN-RESULT-RANK")
def test_nobody_tells_the_rank_of_a_result() -> bool:
    text = """g (float[3,2] x, int64[K] k) => (float[] y) {
        y = Scan <num_scan_inputs = 1, body = b (float[2] e) => (o) { o = Reshape (e, k) }> (x) }"""
    return refuses(model(text), {"x": ones(3, 2), "k": np.array([2, 1])}, "must have the shape set")


@shows("ORT-OUTER-VALUE-RETURNED")
def test_a_body_returns_a_value_of_the_graph_around() -> bool:
    text = "g (float[2] d, float[3,2] x) => (float[3,2] y) { y = Scan <num_scan_inputs = 1, body = b (float[2] e) => (float[2] d) {}> (x) }"
    return refuses(model(text), {"x": ones(3, 2), "d": ones(2)}, "outer scope value being returned directly")


BRANCHES = """g (float[2,3] x, float[N,3] u, bool c) => ({result}) {{
    y = If (c) <then_branch = t () => (float[?,?] a) {{ {one} }}, else_branch = e () => (float[?,?] b) {{ {other} }}> {last} }}"""


@shows("ORT-BRANCH-CONTRADICTION")
def test_a_branch_that_is_not_taken_does_not_fit() -> bool:
    text = BRANCHES.format(result="float[?,?] y", one="a = Neg (x)", other="b = MatMul (x, x)", last="")
    return refuses(model(text), {"x": ones(2, 3), "u": ones(2, 3), "c": np.array(True)}, "Incompatible dimensions")


@shows("ORT-BRANCH-INITIALIZER")
def test_an_initializer_of_one_branch_has_a_name_that_the_other_captures() -> bool:
    text = """g (float[1] x, bool c) => (float[1] y) <float[1] k = {1}> { y = If (c)
        <then_branch = t () => (float[1] a) <float[1] k = {2}> { a = Mul (x, k) }, else_branch = e () => (float[1] b) { b = Add (x, OTHER) }> }"""
    feeds = {"x": ones(1), "c": np.array(True)}
    assert gives(model(text.replace("OTHER", "x")), feeds)[0].tolist() == [2]
    return gives(model(text.replace("OTHER", "k")), feeds)[0].tolist() == [1]


@shows("ORT-IF-10-SIZES")
def test_one_branch_of_an_old_if_tells_the_sizes_of_both() -> bool:
    text = BRANCHES.format(result="int64[2] s", one="a = Neg (x)", other="b = Neg (u)", last="s = Shape (y)")
    feeds = {"x": ones(2, 3), "u": ones(5, 3), "c": np.array(False)}
    assert gives(model(text, 11), feeds)[0].tolist() == [5, 3]
    return gives(model(text, 10), feeds)[0].tolist() == [2, 3]


@shows("ORT-BODY-WEIGHTS-BY-NAME")
def test_weights_given_by_name_do_not_reach_a_body() -> bool:
    proto = scan()
    body = next(attribute.g for attribute in proto.graph.node[0].attribute if attribute.name == "body")
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="nowhere.bin")
    body.initializer.append(weight)
    body.node[0].input[0] = "w"
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_external_initializers(["w"], [ort.OrtValue.ortvalue_from_numpy(ones(2))])
    try:
        ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "should be stored in nowhere.bin" in str(error)
    return False
