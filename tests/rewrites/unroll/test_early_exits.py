"""Loops that stop on what they compute, on targets without loops: all steps are taken, and none after the stop counts."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.text import assert_same_numbers, model_from_text, ort_run

NEXT = "n = Add (h, x) h1 = Tanh (n)"
STOP = "s = ReduceSum <keepdims = 0> (h1) c1 = Less (s, x0)"


def stopping(
    inside: str = NEXT, stop: str = STOP, more: str = "", given: str = "(k, , h0)", limit: str = "6", flag: str = "bool"
) -> onnx.ModelProto:
    stacked = ("float[2] y", ", float[N, 2] ys", ", ys") if more else ("", "", "")
    return model_from_text(
        f"""g (float[2] h0, float[2] x, float x0, bool start) => (float[2] he{stacked[1]}) <int64 k = {{{limit}}}, int64[1] one = {{1}}, int64 two = {{2}}> {{
            begin = Reshape (start, one) he{stacked[2]} = Loop <body = b (int64 i, {flag} c, float[2] h) => ({flag} c1, float[2] h1
            {", " + stacked[0] if more else ""}) {{ {inside} {stop} {more} }}> {given} }}""",
        18,
    )


def loops(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type in ("Loop", "Scan", "If")]


def same_wherever_it_stops(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    taken = set()
    for bound in (-9.0, 0.3, 0.9, 1.4, 9.0):
        for start in (True, False):
            feeds = {"h0": np.array([0.1, -0.2], np.float32), "x": np.array([0.2, 0.3], np.float32)}
            feeds |= {"x0": np.array(bound, np.float32), "start": np.array(start)}
            wanted = ort_run(before, feeds)
            assert_same_numbers(wanted, ort_run(after, feeds))
            taken.add(float(wanted[0][0]))
    assert len(taken) > 1


SPELLINGS = {
    "by what it computes": stopping(),
    "or not at all": stopping(given="(k, start, h0)"),
    "by a condition of one axis": stopping(
        stop="s = ReduceSum <keepdims = 1> (h1) c1 = Less (s, x0)", given="(k, begin, h0)", flag="bool[1]"
    ),
    "or by the count of its steps": stopping(stop=f"{STOP.replace('c1', 'few')} f = Less (i, two) c1 = And (few, f)"),
    "or by a count that only the condition has": stopping(
        stop=f"{STOP.replace('c1', 'few')} f = Less (i, two) c1 = And (few, f)", limit="9223372036854775807"
    ),
    "before it is infinite": stopping(inside="d = Mul (h, h) e = Exp (d) f = Exp (e) h1 = Add (f, x)"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_steps_after_the_stop_do_not_count(spelling: str) -> None:
    before = SPELLINGS[spelling]
    after = ortscan.optimize(before, target="coreml")
    assert loops(after) == []
    same_wherever_it_stops(before, after)


@pytest.mark.parametrize("target", ["cpu", "onnx", "cuda"])
def test_where_loops_run_they_stop(target: str) -> None:
    assert loops(ortscan.optimize(stopping(), target=target)) == ["Loop"]


LEFT = {
    "no constant trip count": (stopping(given="(, start, h0)"), "no constant trip count"),
    "too many steps": (stopping(limit="100000"), "100000 steps"),
    "stacked rows": (stopping(more="y = Neg (h1)"), "'y' is stacked"),
    "random": (stopping(inside="r = RandomNormalLike (h) h1 = Add (r, x)"), "RandomNormalLike"),
    "may fail": (stopping(inside="q = Cast <to = 7> (h) g = Gather (x, q) h1 = Add (g, x)"), "Gather"),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_cannot_take_all_steps_stays_and_says_why(what: str) -> None:
    model, said = LEFT[what]
    loop = ortscan.explain(model, target="coreml").loops[0]
    assert [reason for reason in loop.reasons if reason.code == "EARLY-EXIT" and said in reason.detail]
    assert loops(ortscan.optimize(model, target="coreml", verify=False)) == ["Loop"]
