"""On a CPU a cell stays a loop if the native node is slower than the loop."""

import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.recurrences import written_cells as cells


def becomes(kind: str, *, steps: int | str, rows: int = 1, width: int = 128, fed: bool = False) -> str:
    """Return the operator that replaces the loop on target cpu."""
    before = (cells.INPUT, cells.HIDDEN)
    cells.INPUT = cells.HIDDEN = width
    try:
        cell = cells.written(kind, "one product for all gates")
        model = cell.model(steps=steps, rows=rows)
    finally:
        cells.INPUT, cells.HIDDEN = before
    if fed:
        shapes = {name: cell.weights[name].shape for name in "WR"}
        model.graph.input.extend(onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items())
    result = to_caller_type(rewritten(model)[0])
    inside = [node.op_type for node in result.graph.node]
    for node in result.graph.node:
        inside += [one.op_type for attribute in node.attribute for one in attribute.g.node]
    return next((kind for kind in inside if kind in {"RNN", "GRU", "LSTM", "Scan"}), "")


@pytest.mark.parametrize(
    ("rows", "width", "found"), [(1, 128, "RNN"), (1, 160, "Scan"), (2, 64, "RNN"), (2, 96, "Scan"), (3, 16, "Scan")]
)
def test_an_rnn_of_few_narrow_rows_is_native(rows, width, found):
    assert becomes("RNN", steps=64, rows=rows, width=width) == found


@pytest.mark.parametrize(("steps", "found"), [(4, "Scan"), (40, "LSTM"), ("T", "LSTM")])
def test_run_time_weights_are_rearranged_if_there_are_enough_steps(steps, found):
    assert becomes("LSTM", steps=steps, fed=True) == found
    assert becomes("LSTM", steps=steps) == "LSTM"
