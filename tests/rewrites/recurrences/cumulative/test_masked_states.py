"""Masked sums, products and extremes accumulate the neutral element in steps that keep the state."""

import numpy as np
import pytest

from rewrites.recurrences.cumulative import cumulative
from tests.rewrites.apply import apply, patches, reasons
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

KINDS = {"float": np.float32, "double": np.float64, "int64": np.int64}


def written(
    op: str, kind: str, *, steps: int | str = 5, sides: str = "a, s", wants: str = "ys", mask: str = "2", more: str = ""
) -> str:
    """Return a loop that sets its state to `op` of the state and x in steps where c is true, or where c is false."""
    results = {
        "ys": f"{kind}[{steps},2] ys",
        "z": f"{kind}[2] z",
        "both": f"{kind}[2] z, {kind}[{steps},2] ys, {kind}[{steps},2] bs",
    }
    return f"""g ({kind}[2] s0, {kind}[{steps},2] xs, bool[{steps},{mask}] cs) => ({results[wants]}) {{
        z, ys, bs = Scan <num_scan_inputs = 2, body = b ({kind}[2] s, {kind}[2] x, bool[{mask}] c)
            => ({kind}[2] s1, {kind}[2] y, {kind}[2] before) {{
            a = {op} (s, x)  s1 = Where (c, {sides})  {more or "y = Identity (s1)"}  before = Identity (s) }}> (s0, xs, cs) }}"""


def feeds(kind: str, mask: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    xs = (rng.standard_normal((6, 2)) * 3).astype(KINDS[kind])
    return {"s0": xs[5], "xs": xs[:5], "cs": rng.random((5, mask)) < 0.5}


def masked(text: str, given: dict[str, np.ndarray], opset: int = 18) -> None:
    before = model_from_text(text, opset)
    after, _ = apply(before, [cumulative], feeds=given)
    assert not any(node.op_type == "Scan" for node in after.graph.node)
    for mine, loops in zip(ort_run(after, given), ort_run(before, given), strict=True):
        assert np.array_equal(mine, loops, equal_nan=mine.dtype.kind == "f")
        assert mine.dtype.kind != "f" or np.array_equal(np.signbit(mine[loops == 0]), np.signbit(loops[loops == 0]))


@pytest.mark.parametrize("sides", ["a, s", "s, a"])
@pytest.mark.parametrize("wants", ["ys", "z", "both"])
@pytest.mark.parametrize(
    ("op", "kind"), [("Add", "float"), ("Sub", "double"), ("Add", "int64"), ("Mul", "float"), ("Max", "float"), ("Min", "int64")]
)
def test_each_masked_operator_equals_the_loop(op: str, kind: str, wants: str, sides: str) -> None:
    masked(written(op, kind, wants=wants, sides=sides), feeds(kind), opset=26 if op == "Mul" else 18)


@pytest.mark.parametrize(("steps", "mask"), [("T", "2"), (5, "1"), ("T", "1")])
def test_one_condition_per_row_and_unknown_steps_are_supported(steps: int | str, mask: str) -> None:
    masked(written("Add", "float", steps=steps, mask=mask, wants="both"), feeds("float", int(mask)))


@pytest.mark.parametrize("op", ["Add", "Sub"])
@pytest.mark.parametrize("start", [-0.0, 0.0, np.inf])
def test_masked_operands_have_no_effect(op: str, start: float) -> None:
    xs = np.array([[np.nan, np.inf], [1, -0.0], [np.inf, np.nan], [-1, 0.0], [2, 3]], np.float32)
    cs = np.array([[0, 0], [0, 1], [0, 0], [1, 1], [0, 1]], np.bool_)
    masked(written(op, "float", wants="both"), {"s0": np.full(2, start, np.float32), "xs": xs, "cs": cs})


def test_values_read_before_the_mask_and_conditions_on_the_state_stay() -> None:
    for text in (
        written("Add", "float", more="y = Identity (a)"),
        written("Add", "float").replace("s1 = Where (c,", "p = Greater (s, x)  s1 = Where (p,"),
        written("Add", "float", sides="a, x"),
        written("Add", "float").replace("float[2] y,", "float[2] a,").replace("y = Identity (s1)", ""),
    ):
        _, report = apply(text, [cumulative])
        assert patches(report) == []
    _, report = apply(model_from_text(written("Mul", "uint32"), 26), [cumulative])
    assert reasons(report) == ["CUMULATIVE-TYPE"]
