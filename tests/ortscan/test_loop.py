"""`loop` as users call it: equal to a Python loop over the step, refused or raised if it is not."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan import looping
from ortscan.looping import whole_loop
from ortscan.verification.compare_steps import verify_steps
from rewrites.base.errors import OptionError, VerificationFailed
from rewrites.stepping.step_roles import RoleNames
from tests.support.numbers import assert_same_numbers, drawn
from tests.support.page_code import code_in
from tests.support.runtime import ort_run
from tests.support.text import model_from_text, parsed

CELL = """g (float[B,2] h, float[B,2] x, float[2,2] w) => (float[B,2] h1, float[B,2] y) <float[2,2] k = {0.5, -0.25, 0.125, 0.75}> {
    a = MatMul (x, w) b = MatMul (h, k) c = Add (a, b) h1 = Tanh (c) y = Neg (h1) }"""
TOKENS = """g (int64[B] token, float[B,P,2] cache, int64 position) => (int64[B] next, float[B,Q,2] grown, bool[B] done) <
    float[5,2] table = {0.5, 1, 0.25, -1, 2, 0.125, -0.5, 1.5, 0.75, -2}, int64[1] one = {1}, int64 five = {5}, int64 end = {2}> {
    row = Gather (table, token) r = Unsqueeze (row, one) grown = Concat <axis = 1> (cache, r)
    s = ReduceSum <keepdims = 0> (grown, one) m = ArgMax <axis = 1, keepdims = 0> (s)
    n = Add (m, token) p = Add (n, position) next = Mod (p, five) done = Equal (next, end) }"""
STATES = {"token": "next", "cache": "grown"}


def by_hand(step: onnx.ModelProto, xs: np.ndarray, h: np.ndarray, w: np.ndarray) -> list[np.ndarray]:
    ys = []
    for x in xs:
        h, y = ort_run(step, {"h": h, "x": x, "w": w})
        ys.append(y)
    return [h, np.stack(ys)]


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_the_loop_returns_what_a_python_loop_returns(steps: int) -> None:
    step, data = model_from_text(CELL), drawn(xs=(steps, 3, 2), h=(3, 2), w=(2, 2))
    whole = ortscan.loop(step, states={"h": "h1"}, scan=["x"])
    expected = by_hand(step, **data)
    feed = {"h": data["h"], "x": data["xs"], "w": data["w"]}
    assert_same_numbers(ort_run(whole, feed), expected)
    assert_same_numbers(ort_run(ortscan.optimize(whole), feed), expected, rtol=1e-4)


def test_the_example_of_the_page_runs() -> None:
    names: dict[str, Any] = {}
    (code,) = code_in("how-to/loop-from-step.md", "python")
    exec(code, names)
    shapes = [[dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in names["whole"].graph.input]
    assert shapes == [["batch", 4], ["steps", "batch", 4]]
    data = drawn(h_in=(1, 4), x=(5, 1, 4))
    assert_same_numbers(ort_run(names["fast"], data), ort_run(names["whole"], data))


def tokens_by_hand(limit: int) -> tuple[list[Any], np.ndarray]:
    step, token, cache = model_from_text(TOKENS), np.array([1, 3]), np.zeros((2, 0, 2), np.float32)
    tokens = []
    for position in range(limit):
        token, cache, done = ort_run(step, {"token": token, "cache": cache, "position": np.array(position)})
        tokens.append(token)
        if done.all():
            break
    return tokens, cache


@pytest.mark.parametrize("limit", [1, 3, 40])
def test_a_decoder_stops_after_the_step_that_ends_all_rows(limit: int) -> None:
    tokens, cache = tokens_by_hand(limit)
    names: dict[str, Any] = {"counter": "position", "stop": "done", "stack": ["next"], "outputs": ["next", "grown"]}
    whole = ortscan.loop(parsed(TOKENS), states=STATES, initial={"cache": 0}, max_steps=limit, verify=False, **names)
    assert_same_numbers(ort_run(whole, {"token": np.array([1, 3])}), [np.stack(tokens), cache])
    counted = ortscan.loop(parsed(TOKENS), states=STATES, initial={"cache": 0}, max_steps="limit", verify=False, **names)
    assert_same_numbers(ort_run(counted, {"token": np.array([1, 3]), "limit": np.array(limit)}), [np.stack(tokens), cache])


@pytest.mark.long
def test_the_loop_of_a_decoder_is_verified() -> None:
    whole = whole_loop(parsed(TOKENS), RoleNames(STATES, (), "done", "n", "position", {"cache": 0}, None, ["next"]))
    assert verify_steps(whole.step, whole.loaded, whole.roles, level="quick", time_limit=60).ok


def test_no_steps_return_the_states_and_no_rows() -> None:
    whole = ortscan.loop(parsed(TOKENS), states=STATES, counter="position", max_steps="n", outputs=["next", "done"], verify=False)
    feed = {"token": np.array([1, 3]), "cache": np.ones((2, 4, 2), np.float32), "n": np.array(0)}
    token, done = ort_run(whole, feed)
    assert token.tolist() == [1, 3]
    assert len(done) == 0


@pytest.mark.parametrize("kind", ["path", "bytes", "proto", "ir"])
def test_each_kind_of_model_gives_what_optimize_gives(kind: str, tmp_path: Path) -> None:
    proto = parsed(CELL)
    onnx.save(proto, tmp_path / "step.onnx")
    steps = {"path": tmp_path / "step.onnx", "bytes": proto.SerializeToString(), "proto": proto, "ir": ir.from_proto(proto)}
    whole = ortscan.loop(steps[kind], states={"h": "h1"}, scan=["x"], verify=False)  # type: ignore[call-overload]
    assert isinstance(whole, ir.Model if kind == "ir" else onnx.ModelProto)
    assert proto == parsed(CELL)


def test_weights_in_a_file_are_written_once_next_to_the_output(tmp_path: Path) -> None:
    big = np.linspace(-0.1, 0.1, 64 * 64, dtype=np.float32).reshape(64, 64)
    step = parsed("g (float[1,64] h, float[1,64] x) => (float[1,64] h1) { a = MatMul (h, w) h1 = Add (a, x) }", weights={"w": big})
    onnx.save(step, tmp_path / "step.onnx", save_as_external_data=True, location="step.bin", size_threshold=0)
    whole = ortscan.loop(tmp_path / "step.onnx", states={"h": "h1"}, scan=["x"], output=tmp_path / "whole.onnx")
    assert [entry.value for entry in whole.graph.initializer[0].external_data][:1] == ["whole.onnx.data"]
    assert (tmp_path / "whole.onnx.data").stat().st_size == big.nbytes
    feed = drawn(h=(1, 64), x=(2, 1, 64))
    assert_same_numbers(
        ort_run(str(tmp_path / "whole.onnx"), feed), [(feed["h"] @ big + feed["x"][0]) @ big + feed["x"][1]], rtol=1e-4
    )


@pytest.mark.parametrize(("ir_version", "opset", "result"), [(3, 8, 11), (4, 10, 11), (7, 13, 13), (10, 21, 21)])
def test_old_steps_are_lifted_and_others_keep_their_opset(ir_version: int, opset: int, result: int) -> None:
    step = parsed(
        "g (float[2] h, float[2] x, float[2] k) => (float[2] h1) <float[2] k = {1, 2}> { a = Mul (h, k) h1 = Add (a, x) }", opset
    )
    step.ir_version = ir_version
    whole = ortscan.loop(step, states={"h": "h1"}, scan=["x"])
    assert (whole.opset_import[0].version, [value.name for value in whole.graph.input][:2]) == (result, ["h", "x"])


def test_a_wrong_loop_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoil(model: ir.Model, roles: Any) -> None:
        build(model, roles)
        next(node for node in model.graph[-1].attributes["body"].as_graph() if node.op_type == "Neg").op_type = "Abs"

    build = looping.build_whole
    monkeypatch.setattr(looping, "build_whole", spoil)
    with pytest.raises(VerificationFailed, match="The whole loop differs from its steps"):
        ortscan.loop(parsed(CELL), states={"h": "h1"}, scan=["x"])
    ortscan.loop(parsed(CELL), states={"h": "h1"}, scan=["x"], verify=False)


def test_the_comparison_tries_one_step_and_no_steps() -> None:
    whole = whole_loop(parsed(CELL), RoleNames({"h": "h1"}, ["x"], max_steps="n"))
    verification = verify_steps(whole.step, whole.loaded, whole.roles, level="quick", time_limit=60)
    assert verification.ok
    assert {0, 1, 2, 3} <= {case.varied["n"] for case in verification.cases if case.status == "equal"}


@pytest.mark.long
def test_a_stacked_output_that_grows_cannot_be_compared() -> None:
    step = "g (float[P] c) => (float[Q] d, float[Q] y) <float[1] one = {1}> { d = Concat <axis = 0> (c, one) y = Neg (d) }"
    with pytest.warns(ortscan.OrtscanWarning, match="The result was not verified"):
        ortscan.loop(parsed(step), states={"c": "d"}, max_steps=3)
    ortscan.loop(parsed(step), states={"c": "d"}, max_steps=3, outputs=["d"])


def test_errors_of_options_and_limits_are_those_of_other_verbs() -> None:
    with pytest.raises(OptionError, match="verify must be 'quick', 'full' or False"):
        ortscan.loop(parsed(CELL), states={"h": "h1"}, scan=["x"], verify="no")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="perhaps 'states' was meant"):
        ortscan.loop(parsed(CELL), state={"h": "h1"})  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="the step has no input 'z'"):
        ortscan.loop(parsed(CELL), states={"z": "h1"}, scan=["x"])


@pytest.mark.long
def test_a_loop_is_made_within_limits() -> None:
    step = parsed(CELL)
    whole = ortscan.loop(step, states={"h": "h1"}, scan=["x"], time_limit=60)
    assert whole == ortscan.loop(step, states={"h": "h1"}, scan=["x"])


def test_the_shortest_scanned_input_limits_the_steps() -> None:
    text = "g (float[2] h, float[2] x, float[2] z) => (float[2] h1) { a = Add (h, x) h1 = Sub (a, z) }"
    whole = ortscan.loop(parsed(text), states={"h": "h1"}, scan=["x", "z"], max_steps="n", verify=False)
    long, short = np.ones((5, 2), np.float32), np.zeros((3, 2), np.float32)
    for x, z, expected in ((long, short, 3.0), (short, long, -3.0)):
        feed = {"h": np.zeros(2, np.float32), "x": x, "z": z, "n": np.array(9)}
        assert_same_numbers(ort_run(whole, feed), [np.full(2, expected, np.float32)])


def test_a_warning_names_options_that_loop_has() -> None:
    step = parsed(
        """g (float[2] h, float[N] x) => (float[2] h1) <float seven = {7}, int64 one = {1}> {
        e = Equal (x, seven) i = Cast <to = 7> (e) n = Size (x) m = Add (n, n) a = Sub (i, one) b = Mul (a, m)
        y = Gather (x, b) z = ReduceMax (y) h1 = Add (h, z) }"""
    )
    with pytest.warns(ortscan.OrtscanWarning, match="pass shapes to ortscan.loop"):
        ortscan.loop(step, states={"h": "h1"}, max_steps=2)
    assert ortscan.loop(step, states={"h": "h1"}, max_steps=2, inputs={"x": np.full(2, 7, np.float32)})
