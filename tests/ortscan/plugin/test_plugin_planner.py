"""A planner may return anything: if it is not a plan that fits, onnxruntime runs the loop."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from ortscan.plugin import callback, planning
from ortscan.plugin.planning import Answer, answer_for, planned
from tests.support.plugin_sessions import SCAN, asked_options, both, feeds_of_scan, taken
from tests.support.text import model_from_text

Change = Callable[[Answer], Answer | bytes | None]


def altered(change: Change) -> Callable[[bytes, str], bytes | None]:
    def plan(model: bytes, title: str) -> bytes | None:
        found = answer_for(model, title)
        assert found is not None
        changed = change(found)
        return changed.encoded() if isinstance(changed, Answer) else changed

    return plan


def failing(error: BaseException) -> Change:
    def fail(found: Answer) -> None:
        raise error

    return fail


def model_of(text: str) -> Change:
    return lambda found: Answer(model_from_text(text, 18).SerializeToString(), is_plan=False)


# the inputs are values 0 and 1, the outputs 2 and 3
WRONG: dict[str, Change] = {
    "none": lambda found: None,
    "an error": failing(ValueError("no")),
    "an interrupt": failing(KeyboardInterrupt()),
    "the end of memory": failing(MemoryError()),
    "no words": lambda found: b"",
    "half a word": lambda found: found.encoded()[:2],
    "a plan alone": lambda found: found.content,
    "a part": lambda found: found.encoded()[:-4],
    "more": lambda found: found.encoded() + b"\0" * 4,
    "noise": lambda found: np.random.default_rng(0).bytes(1000),
    "no plan": lambda found: replace(found, content=b""),
    "a part of a plan": lambda found: replace(found, content=found.content[:-4]),
    "another format of plans": lambda found: replace(found, content=b"PLN2" + found.content[4:]),
    "no inputs": lambda found: replace(found, inputs=()),
    "too few outputs": lambda found: replace(found, outputs=(2,)),
    "too many outputs": lambda found: replace(found, outputs=(2, 3, None)),
    "values that are not there": lambda found: replace(found, inputs=(0, 77)),
    "an output as an input": lambda found: replace(found, inputs=(0, 3)),
    "outputs left out": lambda found: replace(found, outputs=(None, 3)),
    "outputs twice": lambda found: replace(found, outputs=(3, 3)),
    "a copy of what is there": lambda found: replace(found, copies=((2, 0),)),
    "a copy of nothing": lambda found: replace(found, outputs=(None, 3), copies=((2, 9),)),
    "a constant of another type": lambda found: replace(found, inputs=(np.zeros((2, 8), np.int32), 1)),
    "many inputs": lambda found: replace(found, inputs=(0,) * 20_000),
    "no model": lambda found: Answer(b"no", is_plan=False),
    "a model that reads others": model_of(
        "g (float[A,8] v0, float[C] v9) => (float[A,8] v2, float[A,8] v3) { v2 = Neg (v0) v3 = Add (v2, v9) }"
    ),
    "a model that gives less": model_of("g (float[A,8] v0) => (float[A,8] v2) { v2 = Neg (v0) }"),
    "a model with names of its own": model_of("g (float[A,8] v0) => (float[A,8] v2, float[A,8] v) { v2 = Neg (v0) v = Abs (v0) }"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_leaves_the_loop_as_it_is(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(callback, "planned", altered(WRONG[what]))
    model, feeds = model_from_text(SCAN, 18), feeds_of_scan()
    plain, asked = both(model, feeds)
    for left, right in zip(asked, plain, strict=True):
        np.testing.assert_array_equal(left, right)
    assert taken(model, feeds, tmp_path) == 0


def test_a_plan_that_fits_no_run_runs_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback, "planned", altered(lambda found: replace(found, inputs=(1, 0), outputs=(3, 2))))
    plain, asked = both(model_from_text(SCAN, 18), feeds_of_scan())
    for left, right in zip(asked, plain, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.long
def test_damaged_plans_are_refused_or_stay_within_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    random, model, feeds = np.random.default_rng(0), model_from_text(SCAN, 18).SerializeToString(), feeds_of_scan()

    def damaged(found: Answer) -> bytes:
        words = np.frombuffer(found.encoded(), np.int32).copy()
        words[random.integers(len(words))] = random.choice([-1, 0, 1, 2, 7, 1 << 20, (1 << 31) - 1])
        return words.tobytes()

    monkeypatch.setattr(callback, "planned", altered(damaged))
    options = quiet_options()
    ran = 0
    for _ in range(200):
        session = ort.InferenceSession(model, options)
        try:
            session.run(None, feeds)
            ran += 1
        except ort.capi.onnxruntime_pybind11_state.InvalidArgument:
            continue
    assert ran > 150


def test_a_model_that_gives_other_types_is_an_error_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    other = model_of("g (float[A,8] v0) => (double[A,8] v2, float[A,8] v3) { v2 = Cast <to = 11> (v0) v3 = Neg (v0) }")
    monkeypatch.setattr(callback, "planned", altered(other))
    session = ort.InferenceSession(model_from_text(SCAN, 18).SerializeToString(), quiet_options())
    with pytest.raises(Exception, match="OrtscanExecutionProvider: a result is of another type"):
        session.run(None, feeds_of_scan())


def test_the_log_says_why_a_loop_is_left(caplog: pytest.LogCaptureFixture) -> None:
    model = model_from_text(SCAN.replace("hT, ys = Scan", "[recurrence] hT, ys = Scan").replace("Tanh", "Cosh"), 18)
    with caplog.at_level("INFO", "ortscan"):
        ort.InferenceSession(model.SerializeToString(), quiet_options())
    assert "Scan 'recurrence' runs on onnxruntime: NATIVE-OPERATOR: Cosh: Cosh is not supported by loop plans" in caplog.text


def test_a_loop_is_planned_once_for_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[bytes]()
    monkeypatch.setattr(planning, "_kept", OrderedDict())
    monkeypatch.setattr(planning, "answer_for", lambda model, title: calls.append(model))
    monkeypatch.setattr(planning, "_MOST_KEPT", 2)
    for model in (b"a", b"b", b"a", b"c", b"a", b"b"):  # b is let go of, since it was asked for least lately
        assert planned(model) is None
    assert calls == [b"a", b"b", b"c", b"b"]


def test_the_planner_is_given_the_loop_as_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all kinds of attributes, constants and types that bodies have."""
    seen: list[onnx.ModelProto] = []

    def look(model: bytes, title: str) -> None:
        seen.append(onnx.load_from_string(model))

    monkeypatch.setattr(callback, "planned", look)
    text = """g (float[B,8] h, float[T,B,8] xs, bool c) => (float[B,8] hT, float[T,B,4] ys)
    <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
      hT, ys = Scan <num_scan_inputs = 1, body = b (float[B,8] s, float[B,8] x) => (float[B,8] s1, float[B,4] y)
        <float[8,4] v = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32}> {
        a = LeakyRelu <alpha = 0.25> (s) q = Mul (a, w) t = Einsum <equation = "bi,ij->bj"> (q, v) e = Transpose <perm = [1, 0]> (t)
        y = Transpose <perm = [1, 0]> (e)
        s1 = If <then_branch = t () => (float[B,8] m) { m = Add (x, s) }, else_branch = e () => (float[B,8] n) { n = Sub (x, s) }> (c)
      }> (h, xs)
    }"""
    model = model_from_text(text, 18)
    options = asked_options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    ort.InferenceSession(model.SerializeToString(), options)
    loop = seen[-1]
    onnx.checker.check_model(loop)
    (node,) = loop.graph.node
    assert [info.name for info in loop.graph.input] == ["v0", "v1", "v4"]
    assert [info.name for info in loop.graph.output] == ["v2", "v3"]
    assert len(loop.graph.initializer) == 1
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(loop.graph.initializer[0]), np.arange(1, 9, dtype=np.float32))
    (theirs,) = model.graph.node
    assert {attributes(each) for each in body_of(node).node} == {attributes(each) for each in body_of(theirs).node}
    assert attributes(node) == attributes(theirs)
    assert len(body_of(node).initializer) == 1
    dims = [[dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in loop.graph.input]
    assert dims == [["d0", 8], ["d1", "d0", 8], []]
    want, got = (ort.InferenceSession(each.SerializeToString()) for each in (model, loop))
    feeds = {**feeds_of_scan(), "c": np.array(False)}
    theirs_by_mine = dict(zip([info.name for info in loop.graph.input], feeds.values(), strict=True))
    for left, right in zip(got.run(None, theirs_by_mine), want.run(None, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


def body_of(node: onnx.NodeProto) -> onnx.GraphProto:
    return next(each.g for each in node.attribute if each.name == "body")


def attributes(node: onnx.NodeProto) -> tuple[str, str]:
    return node.op_type, str(sorted((a.name, str(onnx.helper.get_attribute_value(a))) for a in node.attribute if a.type != a.GRAPH))


@pytest.mark.parametrize("level", [ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL])
def test_loops_that_differ_in_names_alone_are_one(monkeypatch: pytest.MonkeyPatch, level: ort.GraphOptimizationLevel) -> None:
    seen: list[bytes] = []
    monkeypatch.setattr(callback, "planned", lambda model, title: seen.append(model))
    other = (
        SCAN.replace("hT", "k")
        .replace(" ys", " outs")
        .replace("T,B,8", "N,M,8")
        .replace("B,8", "M,8")
        .replace("a = Mul (s, x)", "zz = Mul (s, x)")
    )
    options = quiet_options()
    options.graph_optimization_level = level
    for text in (SCAN, other.replace("(a)", "(zz)"), SCAN.replace("Mul", "Add")):
        ort.InferenceSession(model_from_text(text, 18).SerializeToString(), options)
    first, second, third = (seen[place] for place in (0, len(seen) // 3, -1))
    assert first == second
    assert first != third


def quiet_options() -> ort.SessionOptions:
    options = asked_options()
    options.log_severity_level = 4
    return options


@pytest.mark.parametrize("product", ["MatMulInteger (q, w)", "MatMulInteger (q, w, z)", "DequantizeLinear (q, s)"])
def test_the_log_says_where_a_plan_multiplies_bytes_exactly(product: str, caplog: pytest.LogCaptureFixture) -> None:
    text = f"""g (float[4] v0, float[5,4] v1) => (float[4] v2, float[5,4] v3)
        <int8[4,4] w = {{{", ".join(map(str, range(16)))}}}, float[1] p = {{0}}> {{
        v2, v3 = Scan <num_scan_inputs = 1, body = b (float[4] h, float[4] x) => (float[4] n, float[4] y) {{
            q, s, z = DynamicQuantizeLinear (x) i = {product} f = Cast <to = 1> (i) n = Add (h, f) y = Tanh (n) }}> (v0, v1) }}"""
    with caplog.at_level("INFO", "ortscan"):
        answer = answer_for(model_from_text(text, 18).SerializeToString(), "Scan 'cell'")
    assert answer is not None
    assert ("Scan 'cell' multiplies bytes exactly" in caplog.text) == product.startswith("MatMul")
