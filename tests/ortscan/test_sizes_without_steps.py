"""What a Loop stacks where it makes no step has the sizes that onnxruntime gives it in the original."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.text import model_from_text, ort_run

FEEDS = {"m": np.array(0), "t": np.array(True), "x": np.zeros((3, 2), np.float32)}


def _loop(given: str, state: str, result: str) -> onnx.ModelProto:
    """Declare these sizes of what a Loop is given, of its state, and of what it stacks; none where it is empty."""
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
    """Whether ``after`` has the sizes of ``before``, where onnxruntime knew them: it gives 0 for others, and one 0 for no rank."""
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
