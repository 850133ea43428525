"""If a Loop makes no step, its stacked outputs have the same sizes as in the original on onnxruntime."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.text import model_from_text, ort_run

FEEDS = {"m": np.array(0), "t": np.array(True), "x": np.zeros((3, 2), np.float32)}


def _loop(given: str, state: str, result: str) -> onnx.ModelProto:
    """Return a Loop whose input, state and stacked output declare these sizes, or no shape for an empty text."""
    model = model_from_text(
        f"""g (int64 m, bool t, float{given} x) => (float[?,?] z, float[?,?,?] ys) {{
            z, ys = Loop (m, t, x) <body = b (int64 i, bool c, float{state} s) => (bool c1, float s1, float{result} y) {{
                c1 = Identity (c) s1 = Relu (s) y = Tanh (s1) }}> }}""",
        18,
        check=False,
    )
    body = model.graph.node[0].attribute[0].g
    for info, declared in ((body.input[2], state), (body.output[1], ""), (body.output[2], result)):
        if not declared:
            info.type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize("given", ["[3,2]", "[T,2]"])
@pytest.mark.parametrize("state", ["", "[?,?]", "[3,2]", "[4,2]"])
@pytest.mark.parametrize("result", ["", "[?,?]", "[3,2]", "[4,2]"])
def test_no_size_is_lost_whether_declared_or_contradicted(given: str, state: str, result: str) -> None:
    model = _loop(given, state, result)
    before = ort_run(model, FEEDS)[1].shape
    assert _knows_no_less(ort_run(ortscan.optimize(model, verify=False), FEEDS)[1].shape, before)


@pytest.mark.parametrize("given", ["[3,2]", "[T,2]"])
@pytest.mark.parametrize("state", ["", "[?,?]", "[3,2]"])
def test_no_size_is_lost_on_the_way_to_another_opset(given: str, state: str) -> None:
    for result in ("", "[?,?]", "[3,2]"):
        model = _loop(given, state, result)
        after = ortscan.migrate(model, 21, verify=False)
        assert _knows_no_less(ort_run(after, FEEDS)[1].shape, ort_run(model, FEEDS)[1].shape)


def _knows_no_less(after: tuple[int, ...], before: tuple[int, ...]) -> bool:
    """Return True if ``after`` has all known sizes of ``before``. onnxruntime reports an unknown size as 0."""
    return before == (0,) or (len(before) == len(after) and all(old in (0, new) for old, new in zip(before, after, strict=True)))


@pytest.mark.parametrize("steps", ["m", "nothing"])
@pytest.mark.parametrize("declared", ["[1,2]", "[1,1]", "[?,?]", "[2]"])
def test_a_size_that_is_declared_of_a_free_one_stays(steps: str, declared: str) -> None:
    model = model_from_text(
        f"""g (int64 m, bool t, float[T,2] x) => (float[?,?,?] ys) <int64 nothing = {{0}}> {{
            ys = Loop ({steps}, t) <body = b (int64 i, bool c) => (bool c1, float{declared} y) {{
                c1 = Identity (c) y = Identity (x) }}> }}""",
        18,
        check=False,
    )
    assert _knows_no_less(ort_run(ortscan.optimize(model, verify=False), FEEDS)[0].shape, ort_run(model, FEEDS)[0].shape)


def test_a_rank_that_only_the_declaration_tells_stays() -> None:
    model = model_from_text(
        """g (float[3,3] x, float[T,3,2] w) => (float[?,?,?] ys) <int64 most = {9}, bool never = {0}, int64[3] thirds = {3,3,3}> {
            z, ys = Loop (most, never, x) <body = b (int64 i, bool c, float[?,?] s) => (bool c1, float[?,?] s1, float[?,?] y) {
                p, q, r = Split (s, thirds) s1 = Identity (w) c1 = Identity (c) y = Identity (q) }> }""",
        18,
        check=False,
    )
    feeds = {"x": np.zeros((3, 3), np.float32), "w": np.zeros((1, 3, 2), np.float32)}
    assert ort_run(ortscan.optimize(model, verify=False), feeds)[0].shape == ort_run(model, feeds)[0].shape


CAPTURED = {
    "a Constant node": ("p = Constant <value_ints = [1, 0]> ()", "y = Pad (r, p)"),
    "a copied one": ("k = Constant <value = int64[2] {3, 1}> () p = Identity (k)", "y = Reshape (r, p)"),
    "the number of the largest": ("p = Constant <value_ints = [2]> ()", "y, w = TopK (r, p)"),
    "one of which a branch reads": (
        "p = Constant <value_ints = [1, 0]> ()",
        "y = If (k) <then_branch = t () => (a) { a = Pad (r, p) }, else_branch = e () => (b) { s = Neg (r) b = Pad (s, p) }>",
    ),
    "one of the loop around": (
        "",
        "p = Constant <value_ints = [1, 0]> () y = Loop (m, k) <body = d (int64 j, bool k0) => (k2, w) { w = Pad (r, p) k2 = Identity (k0) }>",
    ),
}


@pytest.mark.parametrize("case", CAPTURED)
def test_sizes_that_captured_constants_tell_stay(case: str) -> None:
    outside, inside = CAPTURED[case]
    model = model_from_text(
        f"""g (int64 m, float[T,3] x) => (float[?,?] ys) <bool t = {{1}}> {{
            {outside} ys = Loop (m, t) <body = b (int64 i, bool k) => (k1, y) {{ k1 = Identity (k) r = Gather (x, i) {inside} }}> }}""",
        18,
        check=False,
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {"m": np.array(0), "x": np.zeros((0, 3), np.float32)}
    before = ort_run(model, feeds)[0].shape
    assert any(before)
    for after in (ortscan.optimize(model, verify=False), ortscan.migrate(model, 21, verify=False)):
        assert ort_run(after, feeds)[0].shape == before


IN_FUNCTION = """g (float[T,3] x, int64 m) => (float zT, float[?,?] ys) <bool t = {1}, float z0 = {1}> { zT, ys = f.p (m, t, z0, x) }
<domain: "f", opset_import: ["": OPSET]>
p (m, t, z0, x) => (zT, ys) {
    zT, ys = Loop (m, t, z0) <body = b (int64 i, bool k, z) => (k1, z1, y) { k1 = Identity (k) z1 = Neg (z) r = Gather (x, i) INSIDE }> }"""


@pytest.mark.parametrize(
    ("opset", "inside"),
    [
        (7, "y = Pad <pads = [1, 0]> (r)"),
        (9, "y = Slice <axes = [0], starts = [1], ends = [3]> (r)"),
        (9, "y, w = TopK <axis = 0, k = 2> (r)"),
        (10, "y = Unsqueeze <axes = [1]> (r)"),
        (9, "s = Unsqueeze <axes = [0]> (r) y = Upsample <mode = \"nearest\"> (s, two)"),
        (10, "y = If (k) <then_branch = t () => (a) { a = Pad <pads = [1, 0]> (r) }, else_branch = e () => (b) { b = Pad <pads = [0, 1]> (r) }>"),
    ],
)  # fmt: skip
def test_sizes_that_attributes_told_in_an_old_function_stay(opset: int, inside: str) -> None:
    text = IN_FUNCTION.replace("OPSET", str(opset)).replace("INSIDE", inside)
    text = text.replace("k1 = Id", "two = Constant <value = float[2] {1, 2}> () k1 = Id") if "two" in inside else text
    header = f'<ir_version: 8, opset_import: ["": {opset}, "f": 1]>\n'
    model = model_from_text(header + text, check=False)
    model.graph.output[1].type.tensor_type.ClearField("shape")
    feeds = {"m": np.array(0), "x": np.zeros((0, 3), np.float32)}
    before = ort_run(model, feeds)[1].shape
    assert any(before)
    _keep_sizes_all_ways(model, feeds, [(), before])


def test_rows_that_grow_beside_in_an_old_function_hide_no_sizes() -> None:
    model = model_from_text(
        """<ir_version: 9, opset_import: ["": 7, "f": 1]>
        g (double[T,3] x, int64 m) => (double[T,4] zT, double[T,4] ys) <double[0,4] z0 = {}, bool c = {1}> { zT, ys = f.p (m, c, z0, x) }
        <domain: "f", opset_import: ["": 7]>
        p (m, c, z0, x) => (zT, ys) {
            zT, ys = Loop (m, c, z0) <body = b (int64 i, bool k, z) => (k1, z1, y) {
                r = Gather (x, i) y = Pad <pads = [1, 0]> (r) u = Unsqueeze <axes = [0]> (y) z1 = Concat <axis = 0> (z, u)
                k1 = Identity (k) }> }""",
        check=False,
    )
    _keep_sizes_all_ways(model, {"m": np.array(0), "x": np.zeros((0, 3))}, [(0, 4), (0, 4)])


def _keep_sizes_all_ways(model: onnx.ModelProto, feeds: dict[str, np.ndarray], sizes: list[tuple[int, ...]]) -> None:
    kept = ortscan.optimize(model, opset="keep", verify=False)
    for each in (model, ortscan.optimize(model, verify=False), kept, ortscan.migrate(model, 18, verify=False)):
        assert [result.shape for result in ort_run(each, feeds)] == sizes
