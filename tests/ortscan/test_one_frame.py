"""Models that are called with one frame and their state: what is left of the loop is its step."""

import numpy as np
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

STEP = "a = MatMul (h, R) b = Add (a, x) h1 = Tanh (b) y = Mul (h1, two)"
WEIGHTS = "float[4,4] R = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}, float two = {2}"
SCAN = f"""g (float[T,2,4] xs, float[2,4] h0) => (float[T,2,4] ys, float[2,4] l) <{WEIGHTS}> {{
    l, ys = Scan <num_scan_inputs = 1, body = b (float[2,4] h, float[2,4] x) => (float[2,4] h1, float[2,4] y) {{ {STEP} }}> (h0, xs) }}"""
BACKWARDS = SCAN.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_directions = [1]")
LOOP = f"""g (float[T,2,4] xs, float[2,4] h0) => (float[T,2,4] ys, float[2,4] l) <{WEIGHTS}, int64 first = {{0}}, bool yes = {{1}}> {{
    dims = Shape (xs) frames = Gather (dims, first)
    l, ys = Loop <body = b (int64 i, bool c, float[2,4] h) => (bool c1, float[2,4] h1, float[2,4] y) {{ c1 = Identity (c) x = Gather (xs, i) {STEP} }}> (frames, yes, h0) }}"""
LAYERS = f"""g (float[T,2,4] xs, float[2,4] h0) => (float[T,2,4] ys, float[2,4] l) <{WEIGHTS}> {{
    k, zs = Scan <num_scan_inputs = 1, body = b (float[2,4] h, float[2,4] x) => (float[2,4] h1, float[2,4] y) {{ {STEP} }}> (h0, xs)
    l, ys = Scan <num_scan_inputs = 1, body = b2 (float[2,4] h, float[2,4] x) => (float[2,4] h1, float[2,4] y) {{ {STEP} }}> (k, zs) }}"""
FORMS = {"a Scan": SCAN, "a Scan from the end": BACKWARDS, "a Loop": LOOP, "two layers": LAYERS}


def frames(count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {"xs": rng.normal(size=(count, 2, 4)).astype(np.float32), "h0": rng.normal(size=(2, 4)).astype(np.float32)}


@pytest.mark.parametrize("target", ["cpu", "coreml"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", ["declared", "fixed"])
def test_one_frame_is_the_step_alone(said: str, form: str, target: str) -> None:
    declared = model_from_text(FORMS[form].replace("[T,", "[1,"), 18)
    after = ortscan.optimize(declared, target=target) if said == "declared" else None
    after = after or ortscan.optimize(model_from_text(FORMS[form], 18), target=target, fix_dims={"T": 1})
    assert not {"Scan", "Loop", "If", "RNN"} & {node.op_type for node in after.graph.node}
    assert_same_numbers(ort_run(after, frames(1)), ort_run(declared, frames(1)))


@pytest.mark.parametrize("form", FORMS)
def test_any_number_of_frames_may_be_one(form: str) -> None:
    model = model_from_text(FORMS[form], 18)
    after = ortscan.optimize(model)
    for count in (1, 5):
        assert_same_numbers(ort_run(after, frames(count)), ort_run(model, frames(count)))


def test_frames_one_by_one_are_all_frames_at_once() -> None:
    step, given = ortscan.optimize(model_from_text(SCAN, 18), fix_dims={"T": 1}), frames(6)
    state, heard = given["h0"], []
    for frame in given["xs"]:
        y, state = ort_run(step, {"xs": frame[None], "h0": state})
        heard.append(y)
    assert_same_numbers([np.concatenate(heard), state], ort_run(model_from_text(SCAN, 18), given))
