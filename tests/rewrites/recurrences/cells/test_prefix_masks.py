"""A mask that compares step numbers with lengths gives a native node its lengths; other masks sort the steps."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.running.graph_index import all_nodes
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

WRITTEN = {
    "steps first": "t = Unsqueeze (r, one) l = Unsqueeze (n, zero) m = Less (t, l)",
    "rows first": "t = Unsqueeze (r, zero) l = Unsqueeze (n, one) c = Less (t, l) m = Transpose <perm = [1, 0]> (c)",
    "lengths compared with steps": "t = Unsqueeze (r, one) l = Unsqueeze (n, zero) m = Greater (l, t)",
    "more steps than are run": "e = Range (z, more, o) t = Unsqueeze (e, one) l = Unsqueeze (n, zero) c = Less (t, l)"
    " m = Slice (c, zero, k, zero)",
}
OTHERS = {
    "the last steps": "t = Unsqueeze (r, one) l = Unsqueeze (n, zero) m = Less (l, t)",
    "from step 1 on": "e = Add (r, o) t = Unsqueeze (e, one) l = Unsqueeze (n, zero) m = Less (t, l)",
    "later steps of more": "e = Range (z, more, o) t = Unsqueeze (e, one) l = Unsqueeze (n, zero) c = Less (t, l)"
    " q = Add (k, one) m = Slice (c, one, q, zero)",
    "lengths that are no integers": "e = Cast <to = 1> (r) t = Unsqueeze (e, one) j = Cast <to = 1> (n) i = Mul (j, half)"
    " l = Unsqueeze (i, zero) m = Less (t, l)",
    "rows in place of steps": "t = Unsqueeze (r, zero) l = Unsqueeze (n, one) m = Less (t, l)",
}


def masked(mask: str, reverse: int) -> onnx.ModelProto:
    """Return an Elman cell over `x`, the rows of which keep their states unless `mask` computes True."""
    return model_from_text(
        f"""g (float[B,8] h0, float[T,B,3] x, int64[B] n, float[3,8] W, float[8,8] R) => (float[B,8] last, float[T,B,8] ys)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, float half = {{0.5}}, int64 z = {{0}}, int64 o = {{1}}> {{
        k = Shape <start = 0, end = 1> (x) s = Squeeze (k, zero) more = Add (s, o) r = Range (z, s, o)
        {mask}
        f = Unsqueeze (m, two)
        last, ys = Scan <num_scan_inputs = 2, scan_input_directions = [{reverse}, {reverse}], scan_output_directions = [{reverse}],
            body = b (float[B,8] h, float[B,3] xt, bool[B,1] run) => (float[B,8] h1, float[B,8] y) {{
            a = MatMul (xt, W) p = MatMul (h, R) v = Add (a, p) w = Tanh (v) h1 = Where (run, w, h) y = Identity (h1) }}> (h0, x, f)
        }}""",
        18,
    )


def feeds(lengths: list[int], steps: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(len(lengths) + steps)
    shapes = {"h0": (len(lengths), 8), "x": (steps, len(lengths), 3), "W": (3, 8), "R": (8, 8)}
    floats = {name: random.standard_normal(shape).astype(np.float32) / 2 for name, shape in shapes.items()}
    return floats | {"n": np.array(lengths, np.int64)}


def kinds(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node, _ in all_nodes(model)}


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("mask", WRITTEN)
def test_lengths_go_to_the_node(mask: str, reverse: int) -> None:
    model = masked(WRITTEN[mask], reverse)
    after = ortscan.optimize(model, target="onnx", verify=False)
    assert "RNN" in kinds(after)
    assert not kinds(after) & {"Scan", "TopK"}
    for lengths, steps in ([3, 1, 5, 0], 5), ([9, -1, 2], 4), ([1], 1), ([0, 0], 3), ([2, 2], 2):
        given = feeds(lengths, steps)
        assert_same_numbers(ort_run(after, given), ort_run(model, given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mask", OTHERS)
def test_other_masks_sort_the_steps(mask: str) -> None:
    model = masked(OTHERS[mask], 0)
    after = ortscan.optimize(model, target="onnx", verify=False)
    assert {"RNN", "TopK"} <= kinds(after)
    given = feeds([3, 1, 5, 0, 2], 5)
    assert_same_numbers(ort_run(after, given), ort_run(model, given), rtol=1e-4, atol=1e-5)
