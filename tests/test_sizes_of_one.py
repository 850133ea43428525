"""Loops over rows in every spelling keep shapes, types and numbers where sizes are one, which tells no axis from another."""

import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.support.numbers import assert_same_numbers
from tests.support.row_loops import CELLS, READS, WRITES, RowLoop
from tests.support.runtime import ort_run
from tests.support.text import parsed

SIZES = [((3, 1, 2), ""), ((2, 1, 1), "TB"), ((1, 2, 1), ""), ((1, 1, 3), "T"), ((3, 2, 1), "H"), ((1, 1, 1), "TBH")]


def assert_kept(loop: RowLoop) -> None:
    model = parsed(loop.text())
    loaded, _ = rewritten(model, debug=True)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    wanted, found = ort_run(model, loop.feeds()), ort_run(result, loop.feeds())
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in wanted]
    assert_same_numbers(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("write", WRITES)
def test_every_way_to_write_a_row(write: str) -> None:
    for i, (sizes, free) in enumerate(SIZES):
        assert_kept(RowLoop(write, "a number, axis 1" if i % 2 else "a number", "a cell" if i % 3 == 0 else "a sum", sizes, free))


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("cell", CELLS)
def test_every_way_to_read_a_row_in_every_recurrence(read: str, cell: str) -> None:
    sizes, free = SIZES[(list(READS).index(read) + list(CELLS).index(cell)) % 3]
    assert_kept(RowLoop("as TorchScript writes it", read, cell, sizes, free))
