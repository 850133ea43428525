"""The loops that the benchmarks time keep shapes and numbers where each size is one, two or three."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.campaigns.benchmarks.loops import loops_of_sizes
from tests.campaigns.benchmarks.scan_8 import tanh_cell
from tests.campaigns.benchmarks.unrolling import CELLS, several_steps
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

SIZES = [(steps, batch, 1 + (steps + batch) % 3) for steps in (1, 2, 3) for batch in (1, 2, 3)]
"""Every pair of sizes for each two of steps, batch and width."""


def assert_kept(result: onnx.ModelProto, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    onnx.checker.check_model(result, full_check=True)
    wanted, found = ort_run(model, feeds), ort_run(result, feeds)
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in wanted]
    assert_same_numbers(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sizes", SIZES)
def test_every_loop_that_is_timed(sizes: tuple[int, int, int]) -> None:
    for loop in loops_of_sizes(*sizes):
        assert_kept(ortscan.optimize(loop.model, verify=False, **loop.options), loop.model, loop.feeds)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_scan_of_opset_8_that_is_timed(sizes: tuple[int, int, int]) -> None:
    steps, batch, width = sizes
    for lengths in (False, True):
        model, feeds = tanh_cell(batch, steps, width, lengths)
        for target in (9, 18, 26):
            assert_kept(ortscan.migrate(model, target, verify=False), model, feeds)
        assert_kept(ortscan.optimize(model, verify=False), model, feeds)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("each", "steps", "width"), [(1, 1, 1), (1, 3, 2), (2, 2, 1), (2, 4, 3), (3, 3, 2), (3, 6, 1)])
def test_several_steps_in_one_body(cell: str, each: int, steps: int, width: int) -> None:
    model = several_steps(cell, steps, each, width)
    draw = np.random.default_rng(0).standard_normal
    feeds = {"xs": draw((steps, 1, width)).astype(np.float32), "h0": draw((1, width)).astype(np.float32)}
    assert_kept(ortscan.optimize(model, verify=False), model, feeds)
    assert_kept(ortscan.optimize(model, verify=False, passes=["unroll"], max_unroll=steps), model, feeds)
