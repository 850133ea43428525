"""Slices of a Concat that read one part of it alone."""

import numpy as np
import pytest

import ortscan
from rewrites.cleanup import dead_code, slices_of_joins
from tests.rewrites.apply import apply
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

SCAN = """g (float[T,2,4] x, float[2,3] h, int64[1] n) => (float[T,2,?] y, float[2,3] l) <int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2},
    int64[1] three = {3}, int64[1] four = {4}, int64[1] seven = {7}, int64[1] far = {99}, int64[1] back = {-1}> {
    l, y = Scan <num_scan_inputs = 1, body = b (float[2,3] s, float[2,4] a) => (float[2,3] s1, float[2,?] o) {
        w = Concat <axis = 1> (s, a) INSIDE }> (h, x) }"""


def fired(inside: str, opset: int = 18) -> bool:
    text = SCAN.replace("INSIDE", inside.replace("KEPT", "f = Constant <value = float {1}> () s1 = Add (s, f)"))
    feeds = {
        "x": np.random.default_rng(0).normal(size=(3, 2, 4)).astype(np.float32),
        "h": np.ones((2, 3), np.float32),
        "n": np.array([4]),
    }
    _, report = apply(text, [slices_of_joins, dead_code], opset=opset, feeds=feeds, check=False)
    return "slices-of-joins" in [patch.rule for loop in report.loops for patch in loop.fired]


@pytest.mark.parametrize(
    "inside",
    [
        "s1 = Slice (w, four, seven, one) o = Identity (w)",
        "s1 = Slice (w, four, far, one) o = Identity (w)",
        "s1 = Slice (w, zero, three, back) o = Identity (w)",
        "KEPT o = Slice (w, three, seven, one)",
        "KEPT o = Slice (w, back, far, one)",
    ],
)
@pytest.mark.parametrize("opset", [11, 18])
def test_what_reads_one_part_reads_it_itself(inside: str, opset: int) -> None:
    assert fired(inside, opset)


@pytest.mark.parametrize(
    "inside",
    [
        "KEPT o = Slice (w, two, four, one)",
        "s1 = Slice (w, n, seven, one) o = Identity (w)",
        "KEPT o = Slice (w, zero, one, zero)",
        "KEPT o = Slice (w, seven, three, one, back)",
        "KEPT o = Slice (w, three, seven, one, two)",
    ],
    ids=["of two parts", "from somewhere", "along another axis", "backwards", "with gaps"],
)
def test_what_reads_more_or_otherwise_stays(inside: str) -> None:
    assert not fired(inside)


@pytest.mark.parametrize("steps", ["T", "5"])
def test_overlapping_frames_need_no_loop(steps: str) -> None:
    text = SCAN.replace("INSIDE", "s1 = Slice (w, four, seven, one) o = Identity (w)").replace("[T,", f"[{steps},")
    model = model_from_text(text, 18, check=False)
    after = ortscan.optimize(model, verify=False)
    assert "Scan" not in {node.op_type for node in after.graph.node}
    feeds = {
        "x": np.random.default_rng(0).normal(size=(5, 2, 4)).astype(np.float32),
        "h": np.ones((2, 3), np.float32),
        "n": np.array([4]),
    }
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
