"""Views of the hidden state keep their own axes, even if an axis of size 1 makes them look like the state."""

import numpy as np
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.apply import read
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

# what is made of h1, [B, H], and its axes
VIEWS = {
    "an axis in front": ("y = Unsqueeze (h1, zero)", "1,B,H"),
    "an axis between": ("y = Unsqueeze (h1, one)", "B,1,H"),
    "an axis behind": ("y = Unsqueeze (h1, two)", "B,H,1"),
    "axes all round": ("u = Unsqueeze (h1, zero) v = Unsqueeze (u, two) y = Unsqueeze (v, four)", "1,B,1,H,1"),
    "an axis in front, by Reshape": ("y = Reshape (h1, in_front)", "1,B,H"),
    "an axis between, by Reshape": ("y = Reshape (h1, between)", "B,1,H"),
    "an axis behind, by Reshape": ("y = Reshape (h1, behind)", "B,H,1"),
    "spread": ("y = Expand (h1, wide)", "BB,H"),
    "one axis": ("y = Reshape (h1, flat)", "BH"),
    "as it is": ("y = Identity (h1)", "B,H"),
}
CELL = "a = MatMul (h, r) b = MatMul (x, w) c = Add (a, b) h1 = Tanh (c)"
MASKED = "a = MatMul (h, r) b = MatMul (x, w) c = Add (a, b) t = Tanh (c) h1 = Where (m, t, h)"


def model_of(view: str, rows: int, size: int, free: bool, masked: bool):
    code, axes = VIEWS[view]
    sizes = {"B": rows, "H": size, "BH": rows * size, "BB": 3 if rows == 1 else rows}
    dims = ",".join(str(sizes.get(dim, dim)) for dim in axes.split(","))
    weights = ", ".join(str((i + 1) % 3 / 4) for i in range(size * size))
    rows_said = "B" if free else str(rows)
    scans = [f"float[4,{rows_said},{size}] xs"] + ["bool[4,1,1] ms"] * masked
    inner = [f"float[{rows_said},{size}] h", f"float[{rows_said},{size}] x"] + ["bool[1,1] m"] * masked
    said = dims if not free else ",".join("?" for _ in dims.split(","))
    return read(
        f"""g (float[{rows_said},{size}] s, {", ".join(scans)}) => (float[{rows_said},{size}] z, float[4,{said}] ys)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] flat = {{-1}}, int64[2] wide = {{{sizes["BB"]}, {size}}},
         int64[3] in_front = {{1, -1, {size}}}, int64[3] between = {{-1, 1, {size}}}, int64[3] behind = {{-1, {size}, 1}},
         float[{size},{size}] r = {{{weights}}}, float[{size},{size}] w = {{{weights}}}> {{
            z, ys = Scan <num_scan_inputs = {1 + masked}, body = b ({", ".join(inner)}) => (float[{rows_said},{size}] h1, float[{said}] y) {{
                {MASKED if masked else CELL} {code}
            }}> (s, xs{", ms" * masked})
        }}"""
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("rows", "size"), [(1, 1), (1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_view_of_the_hidden_state_is_stacked_with_its_own_axes(view: str, rows: int, size: int, masked: bool) -> None:
    random = np.random.default_rng(3)
    feeds = {"s": random.standard_normal((rows, size)), "xs": random.standard_normal((4, rows, size))}
    feeds = {name: array.astype(np.float32) for name, array in feeds.items()}
    if masked:
        feeds["ms"] = np.array([True, False, True, True]).reshape(4, 1, 1)
    for free in (False, True):
        model = model_of(view, rows, size, free, masked)
        loaded, report = rewritten(model, target="onnx", debug=True)
        assert "recurrent-cell" in [patch.rule for patch in report.patches]
        assert_same_numbers(ort_run(to_caller_type(loaded), feeds), ort_run(model, feeds))
