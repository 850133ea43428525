"""Loops keep shapes, types and numbers where each size is one, two or three, which tells no axis from another."""

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.campaigns.benchmarks.loops import loops_of_sizes
from tests.campaigns.benchmarks.scan_8 import tanh_cell
from tests.campaigns.benchmarks.unrolling import CELLS as TIMED_CELLS
from tests.campaigns.benchmarks.unrolling import several_steps
from tests.support.numbers import assert_same_numbers
from tests.support.row_loops import CELLS, READS, WRITES, RowLoop
from tests.support.runtime import ort_run
from tests.support.text import parsed

SIZES = [((3, 1, 2), ""), ((2, 1, 1), "TB"), ((1, 2, 1), ""), ((1, 1, 3), "T"), ((3, 2, 1), "H"), ((1, 1, 1), "TBH")]


def assert_kept(result: onnx.ModelProto, model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    onnx.checker.check_model(result, full_check=True)
    wanted, found = ort_run(model, feeds), ort_run(result, feeds)
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in wanted]
    assert_same_numbers(found, wanted, rtol=1e-4, atol=1e-5)


def assert_rows_kept(loop: RowLoop) -> None:
    model = parsed(loop.text())
    assert_kept(to_caller_type(rewritten(model, debug=True)[0]), model, loop.feeds())


@pytest.mark.parametrize("write", WRITES)
def test_every_way_to_write_a_row(write: str) -> None:
    for i, (sizes, free) in enumerate(SIZES):
        assert_rows_kept(
            RowLoop(write, "a number, axis 1" if i % 2 else "a number", "a cell" if i % 3 == 0 else "a sum", sizes, free)
        )


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("cell", CELLS)
def test_every_way_to_read_a_row_in_every_recurrence(read: str, cell: str) -> None:
    sizes, free = SIZES[(list(READS).index(read) + list(CELLS).index(cell)) % 3]
    assert_rows_kept(RowLoop("as TorchScript writes it", read, cell, sizes, free))


TIMED_SIZES = [(steps, batch, 1 + (steps + batch) % 3) for steps in (1, 2, 3) for batch in (1, 2, 3)]
"""Every pair of sizes for each two of steps, batch and width."""


@pytest.mark.parametrize("sizes", TIMED_SIZES)
def test_every_loop_that_is_timed(sizes: tuple[int, int, int]) -> None:
    for loop in loops_of_sizes(*sizes):
        assert_kept(ortscan.optimize(loop.model, verify=False, **loop.options), loop.model, loop.feeds)


@pytest.mark.parametrize("sizes", TIMED_SIZES)
def test_a_scan_of_opset_8_that_is_timed(sizes: tuple[int, int, int]) -> None:
    steps, batch, width = sizes
    for lengths in (False, True):
        model, feeds = tanh_cell(batch, steps, width, lengths)
        for target in (9, 18, 26):
            assert_kept(ortscan.migrate(model, target, verify=False), model, feeds)
        assert_kept(ortscan.optimize(model, verify=False), model, feeds)


@pytest.mark.parametrize("cell", TIMED_CELLS)
@pytest.mark.parametrize(("each", "steps", "width"), [(1, 1, 1), (1, 3, 2), (2, 2, 1), (2, 4, 3), (3, 3, 2), (3, 6, 1)])
def test_several_steps_in_one_body(cell: str, each: int, steps: int, width: int) -> None:
    model = several_steps(cell, steps, each, width)
    draw = np.random.default_rng(0).standard_normal
    feeds = {"xs": draw((steps, 1, width)).astype(np.float32), "h0": draw((1, width)).astype(np.float32)}
    assert_kept(ortscan.optimize(model, verify=False), model, feeds)
    assert_kept(ortscan.optimize(model, verify=False, passes=["unroll"], max_unroll=steps), model, feeds)
