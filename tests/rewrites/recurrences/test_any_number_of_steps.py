"""Filters and gated recurrences with an unknown number of steps: their numbers for any number of steps, and loops that stay."""

import re

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.loops import loops_in
from rewrites.recurrences import blocks_of_steps
from rewrites.recurrences.linear import constant_filter, gated_recurrence
from tests.rewrites.apply import apply, patches
from tests.rewrites.recurrences.linear.test_constant_filter import CORNERS, DENSE, WAYS, decaying, second_order
from tests.rewrites.recurrences.linear.test_gated_recurrence import WAYS as GATED
from tests.rewrites.recurrences.linear.test_gated_recurrence import gated
from tests.support.runtime import ort_run, ort_session, run_session

RULES = [constant_filter, gated_recurrence]
NUMBERS = re.compile(r"\b(float|double)\[(16|48|60|70|97|100|131|147|200|300|1000|5000)\b")
FILTERS = {name: NUMBERS.sub(r"\1[T", text) for name, text in (WAYS | DENSE).items()}
FILTERS["an average"] = decaying("T", 3, 0.9)
GATES = {f"gated: {name}": NUMBERS.sub(r"\1[T", text) for name, text in GATED.items()}
ANY = FILTERS | GATES
LEFT = ("a free batch", "growing", "gated: of free sizes")
STEPS = (1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 500, 1023, 1024, 1025, 2100)


def numbers(model: onnx.ModelProto, steps: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng, feeds = np.random.default_rng(steps + seed), {}
    for info in model.graph.input:
        dims = [dim.dim_value or {"T": steps, "B": 3}[dim.dim_param] for dim in info.type.tensor_type.shape.dim]
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        feeds[info.name] = np.asarray(rng.uniform(-0.9, 0.9, dims), kind)
    return feeds


@pytest.mark.parametrize("way", [way for way in ANY if way not in LEFT])
def test_any_number_of_steps_computes_the_same_as_the_loop(way: str) -> None:
    before, _ = apply(ANY[way], [])
    after, report = apply(ANY[way], RULES)
    assert patches(report) == (["gated-recurrence"] if way in GATES else ["constant-filter"])
    assert all(node.op_type != "Scan" for node in after.graph.node)
    loop, mine = ort_session(before), ort_session(after)
    for steps in STEPS:
        feeds = numbers(before, steps)
        for one, other in zip(run_session(loop, feeds), run_session(mine, feeds), strict=True):
            size = max(1.0, np.abs(one).max(initial=0))
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=(3e-5 if one.dtype == np.float32 else 1e-9) * size)


@pytest.mark.parametrize("steps", [9, 70, 1030])
@pytest.mark.parametrize(
    ("way", "stack"), [("transposed", "xs"), ("gated: in blocks and a rest", "as"), ("gated: backwards", "bs")]
)
def test_infinities_and_nan_run_the_fallback_loop(way: str, stack: str, steps: int) -> None:
    before, _ = apply(ANY[way], [])
    loop, mine = ort_session(before), ort_session(apply(ANY[way], RULES)[0])
    for value in CORNERS:
        feeds = numbers(before, steps)
        feeds[stack][steps // 2] = value
        for one, other in zip(run_session(loop, feeds), run_session(mine, feeds), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)


def test_the_rules_find_nothing_in_their_own_result() -> None:
    after, _ = apply(decaying("T", 3), [constant_filter, blocks_of_steps])
    again, report = apply(onnx.printer.to_text(after.graph), [constant_filter, blocks_of_steps])
    assert patches(report) == []
    assert [node.op_type for node in again.graph.node] == [node.op_type for node in after.graph.node]


def test_the_loops_of_the_result_are_parts_of_the_loop_that_they_replace() -> None:
    model, report = apply(decaying("T", 3), [constant_filter])
    ((loop,), remaining) = report.loops, loops_in(ir.from_proto(model).graph)
    assert remaining
    assert loop.fate != "removed"


@pytest.mark.parametrize(
    "text",
    [ANY["a free batch"], second_order("T", shape="1024"), ANY["growing"]],
    ids=["rows of any size", "wide rows", "what grows"],
)
def test_unknown_or_wide_rows_and_growing_states_stay(text: str) -> None:
    _, report = apply(text, [constant_filter])
    assert [reason.code for one in report.loops for reason in one.reasons] == ["LINEAR-STEPS"]


@pytest.mark.parametrize("steps", [(17, 1), (64, 8), (24, 17), (128, 192)])
@pytest.mark.parametrize(
    "inside", ["m = Mul (a, s) n = Add (m, b) y = Identity (n)", "m = Mul (half, s) k = Sub (a, b) n = Add (m, k) y = Identity (n)"]
)
def test_stacks_of_different_lengths_are_still_rejected_at_run_time(inside: str, steps: tuple[int, int]) -> None:
    model, report = apply(gated("T", inside, given="float[2] s0, float[T,2] as, float[U,2] bs"), RULES)
    assert len(patches(report)) == 1
    feeds = {"s0": np.ones(2, np.float32), "as": np.ones((steps[0], 2), np.float32), "bs": np.ones((steps[1], 2), np.float32)}
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        ort_run(model, feeds)
