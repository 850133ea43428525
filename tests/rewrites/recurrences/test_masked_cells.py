"""Cells in which rows keep their states in some steps: by sequence lengths or by any mask, however it is written."""

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.recurrences.written_cells import HIDDEN, INPUT, written
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

STEPS, ROWS = 6, 4

KEEPING = {
    "Where": "{new}k = Where (m, {new}, {old})",
    "Where not": "not_{new} = Not (m)  {new}k = Where (not_{new}, {old}, {new})",
    "Where spread over the units": "wide_{new} = Expand (m, spread)  {new}k = Where (wide_{new}, {new}, {old})",
    "products": """f_{new} = Cast <to = 1> (m)  n_{new} = Not (m)  g_{new} = Cast <to = 1> (n_{new})
        a_{new} = Mul (f_{new}, {new})  b_{new} = Mul ({old}, g_{new})  {new}k = Add (a_{new}, b_{new})""",
    "one minus": """f_{new} = Cast <to = 1> (m)  g_{new} = Sub (one, f_{new})
        a_{new} = Mul ({new}, f_{new})  b_{new} = Mul (g_{new}, {old})  {new}k = Add (a_{new}, b_{new})""",
    "a difference": "f_{new} = Cast <to = 1> (m)  d_{new} = Sub ({new}, {old})  e_{new} = Mul (f_{new}, d_{new})  {new}k = Add ({old}, e_{new})",
}
OUTPUTS = {
    "the state": "y = Identity (h1k)",
    "the new value or zero": "y = Where (m, h1, nought)",
    "the state or zero": "y = Where (m, h1k, nought)",
    "the new value times the mask": "fy = Cast <to = 1> (m)  y = Mul (fy, h1)",
}


def masked(
    kind: str, keeping: str, output: str, *, reverse: bool = False, condition: str = "m = Identity (given)", rows: int | str = ROWS
):
    """A model with inputs xs, masks (bool [steps, rows, 1]), lengths (int64 [rows, 1]), times (int64 [steps]) and initial states."""
    cell = written(kind, "split by Slice", "exp")
    kept = "  ".join(KEEPING[keeping].format(new=f"{state}1", old=state) for state in cell.states)
    inner = ", ".join([f"float[{rows},{HIDDEN}] {state}" for state in cell.states])
    nexts = ", ".join([f"float[{rows},{HIDDEN}] {state}1k" for state in cell.states])
    directions = ", scan_input_directions = [1, 1, 1], scan_output_directions = [1]" if reverse else ""
    declared = ", ".join(f"float[{rows},{HIDDEN}] {state}0" for state in cell.states)
    finals = [f"{state}n" for state in cell.states]
    text = f"""<ir_version: 8, opset_import: ["": 18]>
    g ({declared}, float[{STEPS},{rows},{INPUT}] xs, bool[{STEPS},{rows},1] masks, int64[{rows},1] lengths, int64[{STEPS}] times)
    => ({", ".join(f"float[{rows},{HIDDEN}] {final}" for final in finals)}, float[{STEPS},{rows},{HIDDEN}] ys) {{
        {", ".join(finals)}, ys = Scan <num_scan_inputs = 3{directions}, body = step ({inner}, float[{rows},{INPUT}] x,
            bool[{rows},1] given, int64 now) => ({nexts}, float[{rows},{HIDDEN}] y) {{
            {condition} {cell.body} {kept} {OUTPUTS[output]}
        }}> ({", ".join(f"{state}0" for state in cell.states)}, xs, masks, times) }}"""
    model = onnx.parser.parse_model(text)
    weights = cell.weights | {"nought": np.zeros(1, np.float32), "spread": np.array([1, HIDDEN])}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def feeds_of(model: onnx.ModelProto, seed: int, rows: int = ROWS) -> dict[str, np.ndarray]:
    """Return random inputs. One row never runs, and one always does."""
    rng = np.random.default_rng(seed)
    feeds = {
        "masks": rng.random((STEPS, rows, 1)) < 0.5,
        "lengths": rng.integers(-1, STEPS + 3, (rows, 1)),
        "times": np.arange(STEPS),
    }
    feeds["masks"][:, :1], feeds["masks"][:, 1:2] = False, True
    feeds["lengths"][:2] = np.array([[0], [STEPS]])[: len(feeds["lengths"])]
    feeds["xs"] = rng.standard_normal((STEPS, rows, INPUT)).astype(np.float32)
    states = {value.name: rng.standard_normal((rows, HIDDEN)).astype(np.float32) for value in model.graph.input}
    return {name: feeds.get(name, state) for name, state in states.items()}


def nodes_of(
    model: onnx.ModelProto, *, target: str = "onnx", rows: int = ROWS, weights: dict[str, np.ndarray] | None = None
) -> list[str]:
    """Optimise, compare for several masks, and return the recurrent nodes and loops that remain."""
    result = to_caller_type(rewritten(model, target=target, debug=True)[0])
    onnx.checker.check_model(result, full_check=True)
    for seed in range(3):
        feeds = feeds_of(model, seed, rows) | (weights or {})
        assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)
    return [node.op_type for node in result.graph.node if node.op_type in {"RNN", "GRU", "LSTM", "Scan", "Loop", "If"}]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM", "LSTM peepholes"])
@pytest.mark.parametrize("keeping", KEEPING)
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_that_keep_their_states_are_left_out_of_the_node(kind, keeping, reverse):
    assert nodes_of(masked(kind, keeping, "the state", reverse=reverse)) == [kind.split(" ")[0]]


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("keeping", ["Where", "products"])
@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_given_out_where_a_row_does_not_run_stays(output, keeping, reverse):
    assert nodes_of(masked("LSTM", keeping, output, reverse=reverse)) == ["LSTM"]


LENGTHS = {
    "time below length": "m = Less (now, lengths)",
    "length above time": "m = Greater (lengths, now)",
    "the next time at most length": "u = Add (now, one_int)  m = LessOrEqual (u, lengths)",
    "time at least length": "over = GreaterOrEqual (now, lengths)  m = Not (over)",
    "from the end": "left = Sub (steps_int, now)  m = LessOrEqual (left, lengths)",
}


@pytest.mark.parametrize("condition", LENGTHS)
@pytest.mark.parametrize("reverse", [False, True])
def test_sequence_lengths_are_masks(condition, reverse):
    model = masked("GRU", "Where", "the new value or zero", reverse=reverse, condition=LENGTHS[condition])
    arrays = {"one_int": np.array(1), "steps_int": np.array(STEPS)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    assert nodes_of(model) == ["GRU"]


def test_a_state_that_keeps_the_last_output_follows_the_hidden_state():
    model = masked("LSTM", "products", "the state")
    scan = next(node for node in model.graph.node if node.op_type == "Scan")
    body = onnx.helper.get_node_attr_value(scan, "body")
    made = onnx.parser.parse_graph("g (bool[4,1] m, float[4,4] h1, float[4,4] p) => (float[4,4] y) { y = Where (m, h1, p) }")
    del body.node[-1]
    body.node.extend(made.node)
    body.input.insert(0, made.input[2])
    body.output.insert(0, onnx.helper.make_tensor_value_info("p1", 1, [ROWS, HIDDEN]))
    body.node.append(onnx.helper.make_node("Identity", ["y"], ["p1"]))
    scan.input.insert(0, "p0")
    scan.output.insert(0, "pn")
    model.graph.input.append(onnx.helper.make_tensor_value_info("p0", 1, [ROWS, HIDDEN]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("pn", 1, [ROWS, HIDDEN]))
    assert nodes_of(model) == ["LSTM"]


@pytest.mark.parametrize("reverse", [False, True])
def test_lengths_that_a_state_counts_down_are_masks(reverse):
    """Backwards this takes the last steps of each row, which the node's own reverse direction does not."""
    model = masked("LSTM", "Where", "the state", reverse=reverse, condition="m = Greater (n, zero_int)  n1 = Sub (n, one_int)")
    scan = model.graph.node[0]
    body = onnx.helper.get_node_attr_value(scan, "body")
    body.input.insert(0, onnx.helper.make_tensor_value_info("n", 7, [ROWS, 1]))
    body.output.insert(0, onnx.helper.make_tensor_value_info("n1", 7, [ROWS, 1]))
    scan.input.insert(0, "lengths")
    scan.output.insert(0, "left")
    arrays = {"one_int": np.array(1), "zero_int": np.array(0)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    assert nodes_of(model) == ["LSTM"]


def test_one_condition_for_all_rows_is_a_mask_too():
    condition = "three = Constant <value_int = 3> ()  under = Less (now, three)  m = Reshape (under, ones)"
    model = masked("LSTM", "Where", "the state", condition=condition)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, 1]), "ones"))
    assert nodes_of(model) == ["LSTM"]


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("target", ["cpu", "onnx"])
def test_a_free_number_of_rows_is_guarded(rows, target):
    assert nodes_of(masked("LSTM", "Where", "the state", rows="B"), target=target, rows=rows) == ["If"]


def test_a_mask_whose_rows_are_not_known_to_be_the_states_is_one_by_broadcasting():
    """onnx's shape inference does not see captured axes, so it invents a name for the unknown size."""
    condition = "sums = ReduceSum <keepdims = 1> (x, last)  m = Greater (sums, nought)"
    assert nodes_of(masked("GRU", "Where", "the state", condition=condition, rows="B"), target="onnx") == ["If"]


def fed_with(model: onnx.ModelProto, names: str) -> dict[str, np.ndarray]:
    """Turn the weights ``names`` into inputs of the model and return their feeds."""
    fed = {
        tensor.name: onnx.numpy_helper.to_array(tensor).shape for tensor in model.graph.initializer if tensor.name in names.split()
    }
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in fed]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.graph.input.extend(onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in fed.items())
    rng = np.random.default_rng(8)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in fed.items()}


def test_masks_go_together_with_weights_that_are_fed():
    model = masked("LSTM", "products", "the new value or zero")
    assert nodes_of(model, weights=fed_with(model, "W R B")) == ["LSTM"]


@pytest.mark.parametrize("output", ["the new value or zero", "the state or zero"])
@pytest.mark.parametrize("names", ["nought", "W R B nought"])
def test_what_is_given_out_where_a_row_does_not_run_may_be_fed(output, names):
    model = masked("GRU", "Where", output)
    nodes = nodes_of(model, weights=fed_with(model, names))
    assert "GRU" in nodes


NEAR_MISSES = {
    "only one state is kept": ("c1k = Where (m, c1, c)", "c1k = Identity (c1)"),
    "a state is set to zero": ("h1k = Where (m, h1, h)", "h1k = Where (m, h1, nought)"),
    "the mask is the state's": ("m = Identity (given)", "m0 = Greater (h, nought)  m = Slice (m0, at0, one_at, last)"),
    "the masks are two": ("c1k = Where (m, c1, c)", "m2 = Less (now, lengths)  c1k = Where (m2, c1, c)"),
    "kept by halves": ("h1k = Where (m, h1, h)", "hh = Mul (h, half)  h1k = Where (m, h1, hh)"),
}


@pytest.mark.parametrize("miss", NEAR_MISSES)
def test_a_near_miss_keeps_the_loop(miss):
    model = masked("LSTM", "Where", "the state")
    old, new = NEAR_MISSES[miss]
    text = onnx.printer.to_text(model.graph.node[0])
    scan = model.graph.node[0]
    body = onnx.helper.get_node_attr_value(scan, "body")
    place = next(i for i, node in enumerate(body.node) if node.output[0] == old.split(" ")[0])
    inputs = ", ".join(
        f"float {name}"
        for name in ("m", "c1", "c", "h1", "h", "nought", "half", "given", "now", "lengths", "at0", "one_at", "last")
    )
    made = onnx.parser.parse_graph(f"g ({inputs}) => (float z) {{ {new} }}").node
    before, after = list(body.node)[:place], list(body.node)[place + 1 :]
    del body.node[:]
    body.node.extend([*before, *made, *after])
    assert onnx.printer.to_text(scan) != text
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "one_at"))
    assert nodes_of(model) == ["Scan"]


def test_a_mask_that_is_a_number_keeps_the_loop():
    condition = "weight = ReduceSum <keepdims = 1> (x, last)  m = Identity (given)"
    model = masked("LSTM", "Where", "the state", condition=condition)
    body = onnx.helper.get_node_attr_value(model.graph.node[0], "body")
    for node in body.node:
        if node.op_type == "Where":
            new, old = node.input[1:]
            made = f"d_{new} = Sub ({new}, {old})  e_{new} = Mul (weight, d_{new})  {node.output[0]} = Add ({old}, e_{new})"
            parts = onnx.parser.parse_graph(f"g (float {new}, float {old}, float weight) => (float z) {{ {made} }}").node
            body.node.extend(parts)
    kept = [node for node in body.node if node.op_type != "Where"]
    order = [node for node in kept if node.output[0] != "y"] + [node for node in kept if node.output[0] == "y"]
    del body.node[:]
    body.node.extend(order)
    assert nodes_of(model) == ["Scan"]


@pytest.mark.parametrize(("mask", "fuses"), [("3,2,1", True), ("1,1,1", True), ("3,1,1", False), ("1,2,1", False)])
def test_a_mask_over_several_axes_is_that_of_the_rows(mask, fuses):
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[3,2,2] h0, float[4,3,2,2] xs, bool[4,{mask}] masks) => (float[3,2,2] hn, float[4,3,2,2] ys)
        <float[2,2] w = {{1, 2, 3, 4}}, float[2,2] r = {{0.1, 0.2, 0.3, 0.4}}> {{
        hn, ys = Scan <num_scan_inputs = 2, body = step (float[3,2,2] h, float[3,2,2] x, bool[{mask}] m)
            => (float[3,2,2] h1, float[3,2,2] y) {{
            a = MatMul (x, w) c = MatMul (h, r) d = Add (a, c) t = Tanh (d) h1 = Where (m, t, h) y = Identity (h1) }}> (h0, xs, masks) }}"""
    )
    result = to_caller_type(rewritten(model, target="onnx", debug=True)[0])
    assert ("RNN" in [node.op_type for node in result.graph.node]) == fuses
    rng = np.random.default_rng(1)
    feeds = {"h0": rng.standard_normal((3, 2, 2)).astype(np.float32), "xs": rng.standard_normal((4, 3, 2, 2)).astype(np.float32)}
    feeds["masks"] = rng.random((4, *map(int, mask.split(",")))) < 0.5
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)
