"""Indexed reads and writes in the library: equal to the interpreter, and an error if an index is out of range."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import ortscan
from ortscan.native import library as installed
from rewrites.native.operations import NUMPY, Op
from rewrites.native.plan import Plan, Size
from tests.ortscan.native.test_refusals import FAILURES, refused
from tests.rewrites.native.test_indexing import FEEDS, buffer
from tests.support.finding_plans import FOUND, finding, finding_plans, meeting_plans
from tests.support.native_plans import library, operand, run_native
from tests.support.plan_interpreter import run_plan
from tests.support.text import model_from_text


def inputs_of(plan: Plan, seed: int, steps: int = 4) -> list[np.ndarray]:
    """Return numbers with duplicates and NaN, and valid indices from both ends."""
    random = np.random.default_rng(seed)
    made = []
    axis = plan.instructions[0].matrix[0].coefficient
    for index, each in enumerate(plan.inputs):
        shape, kind = (steps, each.dims[0].coefficient), NUMPY[each.dtype]
        if index == (0 if plan.instructions[0].op == Op.LOCATE else 1):
            made.append(random.integers(-axis, axis, shape).astype(kind))
            continue
        array = random.integers(-3, 4, shape).astype(kind)
        if kind.kind == "f":
            array[random.random(shape) < 0.2] = np.nan
            array[random.random(shape) < 0.1] = np.inf
        made.append(array)
    return made


def test_indexing_equals_the_interpreter() -> None:
    for seed, plan in enumerate(finding_plans()):
        given = inputs_of(plan, seed)
        (got,), (wanted,) = run_native(plan, given), run_plan(plan, given)
        if plan.instructions[0].op == Op.SCATTER:
            for step in range(len(got)):
                wrote = np.isin(np.arange(35) // 5, given[1][step] % 7)  # of what no instruction writes nothing is said
                np.testing.assert_array_equal(got[step][wrote], wanted[step][wrote])
        else:
            np.testing.assert_array_equal(got, wanted, str(plan.instructions), strict=True)


def test_writes_into_a_state_combine_with_its_elements() -> None:
    for seed, plan in enumerate(meeting_plans()):
        random = np.random.default_rng(seed)
        kind = NUMPY[plan.inputs[0].dtype]
        shapes = [(35,), (4, 15), (4, 3)]
        given = [random.integers(-7, 7, shape).astype(NUMPY[each.dtype]) for shape, each in zip(shapes, plan.inputs, strict=True)]
        given[1] = np.where(random.random((4, 15)) < 0.1, np.nan, given[1]).astype(kind) if kind.kind == "f" else given[1]
        (got,), (wanted,) = run_native(plan, given), run_plan(plan, given)
        np.testing.assert_array_equal(got, wanted, strict=True)
        assert not np.array_equal(got, given[0])


@pytest.mark.parametrize("index", [7, -8, 2**63 - 1, -(2**63), 2**32])
def test_index_out_of_range_fails_the_run(index: int) -> None:
    plans = [plan for plan in finding_plans() if plan.instructions[0].op not in FOUND]
    for plan in plans[::3]:
        given = inputs_of(plan, 1)
        run_native(plan, given)
        at = 0 if plan.instructions[0].op == Op.LOCATE else 1
        given[at][-1, -1] = index
        with pytest.raises(FAILURES, match="instruction 0 has an index that is out of range"):
            run_native(plan, given)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"along": (8, 5)}, "operand 1 of instruction 0 reaches outside its value"),
        ({"along": (7, 6)}, "operand 1 of instruction 0 reaches outside its value"),
        ({"along": (7, -5)}, "operand 1 of instruction 0 reaches outside its value"),
        ({"along": (2**31 - 1, 2**31 - 1)}, "operand 1 of instruction 0 reaches outside its value"),
        ({"along": (2**31 - 1, -(2**31) + 1)}, "operand 1 of instruction 0 reaches outside its value"),
        ({"along": (-1, 5)}, "instruction 0 has a negative size"),
        ({"op": Op.SCATTER}, "operand 0 of instruction 0 reaches outside its value"),
        ({"op": Op.TOP_K, "along": (6, 1), "operands": 2}, "instruction 0 finds more than there are"),
        ({"op": Op.TOP_K, "along": (-1, 1), "operands": 2}, "instruction 0 has a negative size"),
        ({"op": Op.TOP_K, "along": (4, 1), "operands": 2}, "operand 0 of instruction 0 reaches outside its value"),
        ({"op": Op.ARG_MAX, "operands": 2}, "operand 0 of instruction 0 has an inner stride it cannot have"),
    ],
)
def test_indexing_stays_within_its_values(changes: dict[str, Any], why: str) -> None:
    op = changes.get("op", Op.GATHER)
    operands = [operand(0, (0, 0, 5, 1)), operand(1, (0, 0, 0, 1)), operand(2, (0, 0, 1, 0))]
    counts = [15, 35, 3]
    if changes.get("operands") == 2:
        operands, counts = [operand(0, (0, 0, 4, 1)), operand(1, (0, 0, 5, 1))], [11, 15]
    plan = finding(op, (1, 1, 3, 5), operands, counts, changes.get("along", (7, 5)))
    assert why in refused(plan, len(plan.inputs), 1)


def test_indices_are_int64() -> None:
    plan = next(iter(finding_plans()))
    values = (*plan.values[:2], replace(plan.values[2], dtype=6))
    inputs = (plan.inputs[0], replace(plan.inputs[1], dtype=6))
    assert "operand 2 of instruction 0 has another element type" in refused(replace(plan, values=values, inputs=inputs), 2, 1)
    top = next(plan for plan in finding_plans() if plan.instructions[0].op == Op.TOP_K)
    wrong = replace(top, values=(replace(top.values[0], dtype=1), *top.values[1:]), outputs=(replace(top.outputs[0], dtype=1),))
    assert "instruction 0 gives no indices" in refused(wrong, 1, 1)


def test_indexing_an_empty_axis_is_refused() -> None:
    plan = next(iter(finding_plans()))
    empty = replace(plan.instructions[0], matrix=(Size(0), Size(5), Size(1)))
    given = inputs_of(plan, 1)
    with pytest.raises(FAILURES, match="out of range"):
        run_native(replace(plan, instructions=(empty,)), given)


def test_loop_without_steps_may_index_an_empty_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
    text = """g (float[T, 3] xs, float[3] s, float limit) => (float[3] f, float[K, 3] ys) {
        axis = Constant <value_ints = [0]> () n0 = Shape <start = 0, end = 1> (xs) n = Squeeze (n0, axis)
        yes = Constant <value = bool {1}> () zero = Constant <value_int = 0> ()
        p, f, ys = Loop (n, yes, zero, s) <body = b (int64 i, bool c, int64 at, float[3] h) => (bool on, int64 at2, float[3] h2, float[3] y) {
            one = Constant <value_int = 1> () at2 = Add (at, one) x = Gather <axis = 0> (xs, at) h2 = Add (h, x)
            total = ReduceSum <keepdims = 0> (h2) on = Less (total, limit) y = Identity (h2) }> }"""
    model = model_from_text(text, 18)
    native = ortscan.optimize(model, native=True, verify=False)
    assert any(node.domain == "ai.ortscan" for node in native.graph.node)
    session = ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions()))
    plain = ort.InferenceSession(model.SerializeToString())
    for steps in (5, 0, 1):
        feeds = {"xs": np.ones((steps, 3), np.float32), "s": np.ones(3, np.float32), "limit": np.array(11, np.float32)}
        for left, right in zip(session.run(None, feeds), plain.run(None, feeds), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(("read", "looks"), [("Gather <axis = 0> (xs, i)", True), ("GatherND (xs, at)", False)])
def test_indices_of_empty_rows_are_checked_as_in_onnxruntime(read: str, looks: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
    text = """g (float[4,B] xs, float[B] s, float limit, int64 m) => (float[B] f) { yes = Constant <value = bool {1}> ()
        f = Loop (m, yes, s) <body = b (int64 i, bool c, float[B] h) => (bool on, float[B] h2) {
            pair = Constant <value_ints = [1]> () at = Reshape (i, pair) x = READ h2 = Add (h, x)
            total = ReduceSum <keepdims = 0> (h2) on = Less (total, limit) }> }"""
    model = model_from_text(text.replace("READ", read), 18)
    native = ortscan.optimize(model, native=True, verify=False)
    assert [node.op_type for node in native.graph.node if node.domain == "ai.ortscan"] == ["Loop1"]
    sessions = [
        ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions())),
        ort.InferenceSession(model.SerializeToString()),
    ]
    for rows in (0, 2):
        feeds = {"xs": np.ones((4, rows), np.float32), "s": np.ones(rows, np.float32), "limit": np.array(1e9, np.float32)}
        one, other = (session.run(None, {**feeds, "m": np.array(4)})[0] for session in sessions)
        np.testing.assert_array_equal(one, other, strict=True)
        for session in sessions:  # at a limit, lest it go on for ever
            if rows or looks:
                with pytest.raises(FAILURES):
                    session.run(None, {**feeds, "m": np.array(6)})
            else:
                assert session.run(None, {**feeds, "m": np.array(6)})[0].shape == (0,)


def test_empty_rows_are_not_indexed_out_of_range() -> None:
    row, found, each = operand(0, (0, 0, 0, 1)), operand(2, (0, 0, 1, 0)), operand(1, (0, 0, 0, 1))
    for op in (Op.GATHER, Op.SCATTER):
        plan = finding(op, (1, 1, 3, 0), [row, each, found], [0, 0, 3], (7, 0))
        nothing, indices = np.zeros((4, 0), np.float32), np.arange(12).reshape(4, 3) % 7
        for run in (run_native, run_plan):
            assert run(plan, [nothing, indices])[0].shape == (4, 0)
            with pytest.raises((*FAILURES, IndexError)):
                run(plan, [nothing, indices + 1])
        reached = replace(plan.instructions[0], operands=(row, each, operand(2, (0, 0, 2, 0))))
        wrong = replace(plan, instructions=(reached,))
        assert "operand 2 of instruction 0 reaches outside its value" in refused(wrong, 2, 1)


def test_session_fails_as_onnxruntime_and_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
    text = buffer("i = Reshape (x, pair) u = Reshape (r, row) h1 = ScatterND (h, i, u) y = Gather <axis = 0> (h1, x)")
    model = model_from_text(text, 18)
    native = ortscan.optimize(model, native=True, verify="full")
    assert any(node.domain == "ai.ortscan" for node in native.graph.node)
    session = ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions()))
    plain = ort.InferenceSession(model.SerializeToString())
    for left, right in zip(session.run(None, FEEDS), plain.run(None, FEEDS), strict=True):
        np.testing.assert_array_equal(left, right)
    wrong = FEEDS | {"xs": np.array([0, 1, 4, 0, 0])}
    for each in (session, plain):
        with pytest.raises(FAILURES):
            each.run(None, wrong)
    np.testing.assert_array_equal(session.run(None, FEEDS)[1], plain.run(None, FEEDS)[1])


MEETINGS = """g (KIND[4,W] s, int64[6,3] xs, KIND[6,3,W] us) => (KIND[4,W] z, KIND[6,4,W] ys) {
  z, ys = Scan <num_scan_inputs = 2, body = b (KIND[4,W] h, int64[3] x, KIND[3,W] u) => (KIND[4,W] h1, KIND[4,W] y) {
    last = Constant <value_ints = [1]> () i = Unsqueeze (x, last) e0 = Shape (u) e = Expand (i, e0)
    a = ScatterND <reduction = "WAY"> (h, i, u) h1 = ScatterElements <reduction = "WAY", axis = 0> (a, e, u) y = Identity (h1) }> (s, xs, us) }"""


@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize("way", ["add", "mul", "max", "min"])
def test_scatter_reductions_equal_onnxruntime(way: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_built", library)
    for width in (1, 3, 17):
        model = model_from_text(MEETINGS.replace("KIND", kind).replace("WAY", way).replace("W]", f"{width}]"), 18)
        native = ortscan.optimize(model, passes=["native-loop"], verify=False)
        assert [node.op_type for node in native.graph.node] == ["Scan1"]
        random, numbers = np.random.default_rng(width), [0.0, -0.0, 1, -2, 3, 1.5, np.nan, np.inf, -np.inf]
        if kind.startswith("int"):
            numbers = [0, 1, -2, 3, 2**31 - 1, -(2**31)]
        feeds = {
            "s": random.choice(numbers, (4, width)).astype(kind.replace("float", "float32")),
            "xs": random.integers(-4, 4, (6, 3)),
            "us": random.choice(numbers, (6, 3, width)).astype(kind.replace("float", "float32")),
        }
        got = ort.InferenceSession(native.SerializeToString(), ortscan.register(ort.SessionOptions())).run(None, feeds)
        for left, right in zip(got, ort.InferenceSession(model.SerializeToString()).run(None, feeds), strict=True):
            np.testing.assert_array_equal(left, right, strict=True)
            real = ~np.isnan(right)
            np.testing.assert_array_equal(np.signbit(left)[real], np.signbit(right)[real])


def beams(kind: str, width: int, largest: int, steps: int = 4) -> bytes:
    """Return a loop that keeps the top three of ``width`` scores in each step and adds the best to the next scores."""
    return model_from_text(
        f"""g ({kind}[{steps},{width}] xs, {kind}[1] h0) => ({kind}[1] h, {kind}[{steps},3] ys, int64[{steps},3] places) {{
        h, ys, places = Scan <num_scan_inputs = 1, body = b ({kind}[1] h, {kind}[{width}] x) => ({kind}[1] h1, {kind}[3] y, int64[3] i) {{
            k = Constant <value = int64[1] {{3}}> ()  zero = Constant <value = int64[1] {{0}}> ()
            s = Add (x, h)  y, i = TopK <largest = {largest}> (s, k)  h1 = Gather (y, zero) }}> (h0, xs) }}""",
        18,
    ).SerializeToString()


def sessions(model: bytes) -> tuple[ort.InferenceSession, ort.InferenceSession]:
    """Return a plain session and a session that runs the plan of the loop."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    planned = ortscan.register(ort.SessionOptions())
    planned.intra_op_num_threads = 1
    result = ortscan.optimize(model, native=True, verify=False).SerializeToString()
    assert b"Scan1" in result
    return ort.InferenceSession(model, options), ort.InferenceSession(result, planned)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("width", [3, 15, 16, 17, 33, 1000])
@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
def test_topk_of_long_rows_equals_onnxruntime(kind: str, width: int, largest: int) -> None:
    original, planned = sessions(beams(kind, width, largest))
    random = np.random.default_rng(width)
    for scores in (
        random.integers(-9, 9, (4, width)),
        random.integers(-(10**6), 10**6, (4, width)),
        np.arange(4 * width).reshape(4, -1),
    ):
        dtype = NUMPY[{"float": 1, "double": 11, "int32": 6, "int64": 7}[kind]]
        feeds = {"xs": scores.astype(dtype), "h0": np.zeros(1, dtype)}
        for got, wanted in zip(planned.run(None, feeds), original.run(None, feeds), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("place", [0, 2, 14, 15, 16, 40, 99])
def test_nan_is_the_largest_of_a_long_row(place: int) -> None:
    _, planned = sessions(beams("float", 100, 1))
    xs = np.tile(np.arange(100, dtype=np.float32) % 7, (4, 1))
    xs[0, place] = np.nan
    _, _, places = planned.run(None, {"xs": xs, "h0": np.zeros(1, np.float32)})
    assert places[0].tolist() == [place, *[at for at in (6, 13, 20) if at != place][:2]]
