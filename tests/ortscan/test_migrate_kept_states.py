"""Opset-8 Scans whose free sizes no step can change: they are lifted without a branch for one step."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

MODEL = """<ir_version: 4, opset_import: ["": 8]>
g (float[1,N,2] s, float[1,T,M,3] x) => (float[1,P,2] z, float[1,T,Q,2] y) <float[5,2] w = {1, 0, 0, 1, 1, 1, 0, -1, 1, 0}, float[3,2] v = {1, 0, 0, 1, 1, 1}> {
    z, y = Scan <num_scan_inputs = 1, body = b (float[N1,2] h, float[M1,3] a) => (float[P1,2] h1, float[Q1,2] y1) {
        INSIDE y1 = Neg (h1) }> (, s, x) }"""
GIVES = "c = Concat <axis = 1> (a, h) p = MatMul (c, w) "
KEPT = {
    "of itself": "h1 = Tanh (h)",
    "joined and multiplied": GIVES + "h1 = Mul (p, h)",
    "joined twice": GIVES + "k = Concat <axis = 1> (a, p) l = MatMul (k, w) h1 = Sub (h, l)",
    "added, cut apart": GIVES + "k, l = Split <axis = 1> (p) o = Concat <axis = 1> (l, k) h1 = Add (o, h)",
}
CHANGED = {
    "joined alone, where no rows of it are left out": GIVES + "h1 = Tanh (p)",
    "multiplied before it is joined, by no rows": "q = MatMul (a, v) r = Mul (h, q) " + GIVES + "h1 = Mul (p, r)",
    "widened": "q = MatMul (a, v) h1 = Add (q, h)",
    "replaced": "h1 = MatMul (a, v)",
    "cut": "h1 = Slice <starts = [0], ends = [1]> (h)",
}


def answer(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        return ort_run(model, given)
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
        return None


@pytest.mark.parametrize("inside", [*KEPT, *CHANGED])
def test_a_branch_is_written_only_where_a_step_may_change_the_state(inside):
    model = model_from_text(MODEL.replace("INSIDE", {**KEPT, **CHANGED}[inside]), check=False)
    after = ortscan.migrate(model, 13)
    assert ("If" in {node.op_type for node in after.graph.node}) == (inside in CHANGED)
    ran = 0
    for steps, state_rows, rows in ((1, 2, 2), (3, 2, 2), (1, 1, 3), (1, 3, 1), (1, 0, 0), (1, 0, 3), (1, 3, 0)):
        rng = np.random.default_rng(state_rows + rows)
        given = {"s": rng.normal(size=(1, state_rows, 2)), "x": rng.normal(size=(1, steps, rows, 3))}
        given = {name: array.astype(np.float32) for name, array in given.items()}
        wanted = answer(model, given)
        if wanted is None:
            continue
        ran += 1
        if "Concat" in {**KEPT, **CHANGED}[inside] and (state_rows == 0) != (rows == 0):
            assert [one.shape for one in ort_run(after, given)] == [one.shape for one in wanted]  # memory nobody wrote to
        else:
            assert_same_numbers(ort_run(after, given), wanted)
    assert ran >= 2
