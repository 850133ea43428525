"""Loops as Paddle's exporter writes a while: states copied by arithmetic, counters in floats, rows written by ScatterElements."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.targets import TARGETS
from tests.support.text import assert_same_numbers, model_from_text, ort_run

COPIED = "{0}u = Unsqueeze ({0}1, a0) {0}v = Add ({0}u, {1}) {0}n = Squeeze ({0}v, a0)"
NEXT = "{0}f = Cast <to = 1> ({1}) {0}g = Add ({0}f, one) {0} = Cast <to = 7> ({0}g)"
WRITE = f"""{NEXT.format("e", "i")} s = Shape (t) n = Gather (s, a1) last = Min (n, e)
    old = Slice (t, i, last, a1, a1) sizes = Shape (old) row = Unsqueeze (h1, a1) wide = Expand (row, sizes)
    from = Squeeze (i) to = Squeeze (last) by = Squeeze (a1) places = Range (from, to, by) shaped = Reshape (places, turned)
    front = Slice (sizes, a0, a1, a0) back = Slice (sizes, a2, a3, a0) times = Concat <axis = 0> (front, a1, back)
    all = Tile (shaped, times) t1 = ScatterElements <axis = 1> (t, all, wide)"""
GO_ON = f"{NEXT.format('i1', 'i')} {NEXT.format('m1', 'm')} less = Less (i1, m1)"
WEIGHTS = (
    "float one = {1}, float zero = {0}, int64 nought = {0}, int64[1] a0 = {0}, int64[1] a1 = {1}, int64[1] a2 = {2}, int64[1] a3 = {3},"
    "int64[3] turned = {1, -1, 1}, int64[1] first = {0}, bool[1] go = {1}, int64 most = {9223372036854775807}"
)


def a_while(bound: str = "int64[1] bound = {4}", write: str = WRITE, go_on: str = GO_ON, rows: int = 5) -> onnx.ModelProto:
    fed = "" if "=" in bound else f", {bound}"
    known = f", {bound}" if "=" in bound else ""
    body = f"""x = Tanh (h) y = Mul (x, w) h1 = Add (y, x) {write} {go_on} {COPIED.format("h", "zero")} {COPIED.format("t", "zero")}
        wn = Identity (w) mu = Unsqueeze (m, a0) mv = Add (mu, nought) mn = Squeeze (mv, a0)
        number = Cast <to = 7> (less) same = Add (number, nought) c1 = Cast <to = 9> (same)"""
    return model_from_text(
        f"""g (float[2, 3] h0, float[2, {rows}, 3] t0, float[3] w0{fed}) => (float[2, {rows}, 3] te) <{WEIGHTS}{known}> {{
            he, te, ie, me, we = Loop <body = b (int64 k, bool[1] c, float[2, 3] h, float[2, {rows}, 3] t, int64[1] i, int64[1] m, float[3] w)
                => (bool[1] c1, float[2, 3] hn, float[2, {rows}, 3] tn, int64[1] i1, int64[1] mn, float[3] wn) {{ {body} }}>
            (most, go, h0, t0, first, bound, w0) }}""",
        18,
    )


def feeds(rows: int = 5, **more: np.ndarray) -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    shapes = {"h0": (2, 3), "t0": (2, rows, 3), "w0": (3,)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} | more


def same(before: onnx.ModelProto, after: onnx.ModelProto, given: dict[str, np.ndarray]) -> None:
    assert_same_numbers(ort_run(before, given), ort_run(after, given))


SPELLINGS = {
    "as it is": a_while(),
    "a longer buffer": a_while(rows=9),
    "a counter of integers": a_while(go_on="i1 = Add (i, a1) less = Less (i1, m)", bound="int64[1] bound = {5}"),
    "the bound as it is": a_while(go_on=f"{NEXT.format('i1', 'i')} less = LessOrEqual (i1, m)"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("target", [name for name, target in TARGETS.items() if not target.loops][:3])
def test_no_loop_is_left_where_none_runs(spelling: str, target: str) -> None:
    before = SPELLINGS[spelling]
    rows = before.graph.input[1].type.tensor_type.shape.dim[1].dim_value
    after = ortscan.optimize(before, target=target, verify=False)
    assert not {"Loop", "Scan", "If", "ScatterElements"} & {node.op_type for node in after.graph.node}
    same(before, after, feeds(rows))


def test_a_bound_that_is_fed_takes_as_many_steps_as_it_says() -> None:
    before = a_while("int64[1] bound")
    after = ortscan.optimize(before, verify=False)
    for bound in (0, 2, 4):
        same(before, after, feeds(bound=np.array([bound])))


BY_DATA = (
    f"{GO_ON.replace('less', 'few')} r = ReduceMax <keepdims = 0> (h1) q = Less (r, one) p = Reshape (q, a1) less = And (few, p)"
)


def test_a_loop_that_numbers_stop_keeps_its_condition_and_says_so() -> None:
    before = a_while(go_on=BY_DATA)
    said = ortscan.explain(before, target="coreml").loops[0]
    assert "LOOP-CONDITION" in [reason.code for reason in said.reasons]
    same(before, ortscan.optimize(before, target="coreml", verify=False), feeds())
