"""Scans of both directions on one sequence, in all cells, encodings and spellings of a reversal: one node where it can be."""

import random

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from ortscan.running.graph_index import all_nodes
from tests.rewrites.direction.test_both_directions import ops
from tests.rewrites.direction.two_directions import two_scans
from tests.rewrites.recurrences.test_masked_cells import KEEPING, OUTPUTS, feeds_of, masked
from tests.rewrites.recurrences.written_cells import ENCODINGS, written
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

KINDS = ("RNN", "GRU", "GRU keeping the rest", "LSTM", "LSTM peepholes", "LSTM coupled")
SIZE = "sh{n} = Shape ({x}) t1{n} = Gather (sh{n}, zero) t{n} = Squeeze (t1{n}, zero) e{n} = Sub (t{n}, n1)"
SPELLINGS = (
    "{y} = Slice ({x}, last, far, zero, last)",
    f"{SIZE} r{{n}} = Range (n0, t{{n}}, n1) i{{n}} = Sub (e{{n}}, r{{n}}) {{y}} = Gather ({{x}}, i{{n}})",
    """sh{n} = Shape ({x}) b{n} = Gather (sh{n}, one) t1{n} = Gather (sh{n}, zero) l{n} = Expand (t1{n}, b{n})
    {y} = ReverseSequence <batch_axis = 1, time_axis = 0> ({x}, l{n})""",
    """in{n} = Transpose <perm = [1, 0, 2]> ({x}) mid{n} = Slice (in{n}, last, far, one, last)
    {y} = Transpose <perm = [1, 0, 2]> (mid{n})""",
)
AFTER = {
    "side by side": "out = Concat <axis = -1> (f_ys, zs)",
    "the other way round": "out = Concat <axis = -1> (zs, f_ys)",
    "a sum": "out = Add (f_ys, zs)",
    "batch first": """ft = Transpose <perm = [1, 0, 2]> (f_ys) bt = Transpose <perm = [1, 0, 2]> (zs)
        out = Concat <axis = 2> (ft, bt)""",
    "turned round again": "out = Concat <axis = 2> (f_ys, b_ys)",
}
TARGETS = ("onnx", "onnx", "cpu", "tensorrt", "qnn")


def optimised(model: onnx.ModelProto, target: str) -> onnx.ModelProto:
    loaded, _ = rewritten(model, target=target, debug=True)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    return result


def cuts_a_sequence(model: onnx.ModelProto) -> bool:
    """Whether a Slice cuts anything but the sizes that a guard asks for."""
    nodes = [node for node, _ in all_nodes(model)]
    sizes = {node.output[0] for node in nodes if node.op_type == "Shape"}
    return any(node.op_type == "Slice" and node.input[0] not in sizes for node in nodes)


@pytest.mark.parametrize("seed", range(40))
def test_two_scans_of_opposite_directions(seed):
    chance = random.Random(seed)
    kind = chance.choice(KINDS)
    encodings = [chance.choice(ENCODINGS[:12]) for _ in range(2)]
    forward, backward = (written(kind, encoding) for encoding in encodings)
    zeros, spelling, after = chance.random() < 0.5, chance.choice(SPELLINGS), chance.choice(list(AFTER))
    rows, target = chance.choice([1, 2, 8, "B"]) if not zeros else chance.choice([1, 2, 8]), chance.choice(TARGETS)
    model = two_scans(forward, backward, spelling, AFTER[after], rows=rows, steps=chance.choice([5, "T"]), zeros=zeros)
    result = optimised(model, target)
    for steps, count in ((5, 1 if rows == 1 else 2), *(((5, 3),) if rows == "B" else ())):
        rng = np.random.default_rng(seed)
        dims = {"T": steps, "B": count}
        feeds = {
            info.name: rng.standard_normal(
                [dims.get(dim.dim_param, dim.dim_value) for dim in info.type.tensor_type.shape.dim]
            ).astype(np.float32)
            for info in model.graph.input
        }
        expected = ort_run(model, feeds)
        assert_same_numbers(ort_run(result, feeds), expected, rtol=1e-4, atol=1e-5)
    if target == "onnx" and "projection before the loop" not in encodings:
        assert sum(op.endswith("bidirectional") for op in ops(result)) == 1
        assert not {"Scan", "ReverseSequence", "Range"} & set(ops(result))
        assert cuts_a_sequence(result) == (after == "turned round again")


@pytest.mark.parametrize("seed", range(8))
def test_cells_with_masks_between_reversals_stay_right(seed):
    chance = random.Random(seed)
    kind, keeping, output = chance.choice(["RNN", "GRU", "LSTM"]), chance.choice(list(KEEPING)), chance.choice(list(OUTPUTS))
    model = masked(kind, keeping, output)
    (scan,) = model.graph.node
    turned = [name for name in ("xs", "masks") if seed % 4 != 1 or name == "xs"]
    scan.input[:] = [f"{name}_turned" if name in turned else name for name in scan.input]
    result = scan.output[-1]
    scan.output[-1] = "stacked"
    ends = ["from_last", "to_first", "along", "from_last"]
    turns = [onnx.helper.make_node("Slice", [name, *ends], [f"{name}_turned"]) for name in turned]
    back = onnx.helper.make_node("Slice", ["stacked", *ends], [result])
    del model.graph.node[:]
    model.graph.node.extend([*turns, scan, back])
    numbers = {"from_last": -1, "to_first": np.iinfo(np.int64).min, "along": 0}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(np.array([number]), name) for name, number in numbers.items())
    after = optimised(model, chance.choice(["onnx", "cpu"]))
    for again in range(3):
        feeds = feeds_of(model, again)
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)
