"""Cells in every encoding become native nodes, and what is no cell does not."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from ortscan.running.graph_index import all_nodes
from tests.rewrites.recurrences.written_cells import ENCODINGS, Written, written, written_cells
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

CELLS = list(written_cells())
NODES = {"RNN", "GRU", "LSTM"}


def fused(cell: Written, *, feeds: dict[str, np.ndarray] | None = None, target: str = "onnx", **sizes) -> list[onnx.NodeProto]:
    """Optimise, compare on onnxruntime, and return the native nodes and loops of the result, including branches."""
    model = cell.model(**sizes)
    loaded, _ = rewritten(model, target=target, debug=True)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    given = feeds or cell.feeds(**{key: size for key, size in sizes.items() if key in ("steps", "rows") and isinstance(size, int)})
    assert_same_numbers(ort_run(result, given), ort_run(model, given), rtol=1e-4, atol=1e-5)
    return [node for node, _ in all_nodes(result) if node.op_type in {*NODES, "Scan", "Loop"}]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_cell_becomes_its_node_however_it_is_written(cell):
    (node,) = fused(cell)
    assert node.op_type == cell.name.split(",")[0].split(" ")[0]


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_cell_may_be_cut_by_a_reshape_with_allowzero(kind):
    cell = written(kind, "split by Reshape")
    cuts = {name: np.where(sizes == 0, 2, sizes) for name, sizes in cell.weights.items() if name == "cut"}
    allowing = replace(cell, body=cell.body.replace("Reshape (", "Reshape <allowzero = 1> ("), weights={**cell.weights, **cuts})
    (node,) = fused(allowing, rows=2)
    assert node.op_type == kind


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
@pytest.mark.parametrize(("rows", "turned"), [(2, False), (8, True), (16, True)])
def test_on_a_cpu_many_rows_are_turned_round_outside(kind, rows, turned):
    for target in ("cpu", "onnx"):
        (node,) = fused(written(kind, "split by Slice"), target=target, rows=rows, steps=5, reverse=True)
        ways = [attribute.s for attribute in node.attribute if attribute.name == "direction"]
        assert ways == ([] if turned and target == "cpu" else [b"reverse"])


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("reverse", [False, True])
def test_direction_and_free_sizes_stay(kind, reverse):
    cell = written(kind, "one product for all gates" if kind != "GRU" else "split by Slice")
    for rows, steps in ((1, 1), (3, 4), (0, 4)):
        (node,) = fused(cell, feeds=cell.feeds(steps=steps, rows=rows), steps="T", rows="B", reverse=reverse)
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        assert attributes.get("direction", b"forward") == (b"reverse" if reverse else b"forward")


MUTATIONS = {
    "another activation": ("g = Tanh (a_g)", "g = Sin (a_g)"),
    "a gate used twice": ("fc = Mul (f, c)", "fc = Mul (i, c)"),
    "a cell that is clipped": ("t = Tanh (c1)", "cc = Min (c1, one)  t = Tanh (cc)"),
    "a skip connection": ("h1 = Mul (o, t)", "ot = Mul (o, t)  h1 = Add (ot, h)"),
    "a gate that sees the square of the state": ("i = Sigmoid (a_i)", "hh = Mul (h, h)  ah = Add (a_i, hh)  i = Sigmoid (ah)"),
    "a difference of the wrong two": ("c1 = Add (fc, ig)", "c1 = Sub (ig, fc)"),
    "normalised gates": ("g = Tanh (a_g)", "m = ReduceMean <keepdims = 1> (a_g, last_axis)  gm = Sub (a_g, m)  g = Tanh (gm)"),
    "an output of the cell before the step": ("t = Tanh (c1)", "t = Tanh (c)"),
    "units of different activations": (
        "g = Tanh (a_g)",
        "g0, g2 = Split <axis = 1, num_outputs = 2> (a_g)  g1 = Tanh (g0)  g3 = Relu (g2)  g = Concat <axis = 1> (g1, g3)",
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_near_miss_does_not_fuse(mutation):
    old, new = MUTATIONS[mutation]
    cell = written("LSTM", "one product for all gates", change=lambda text: text.replace(old, new))
    assert new in cell.body
    cell.weights["last_axis"] = np.array([1])
    nodes = fused(cell)
    assert [node.op_type for node in nodes if node.op_type != "RNN"] == ["Scan"]


@pytest.mark.parametrize(
    ("mutation", "code", "detail"),
    [
        ("normalised gates", "CELL-OPERATOR", "ReduceMean producing 'm' is applied to the state, as in no RNN, GRU or LSTM"),
        ("another activation", "CELL-OPERATOR", "Sin producing 'g' is applied to the state, as in no RNN, GRU or LSTM"),
        ("a gate used twice", "CELL-EQUATIONS", "the equations of the state 'h', 'c' are those of no RNN, GRU or LSTM"),
    ],
)
def test_the_report_says_what_keeps_a_loop_from_being_a_cell(mutation, code, detail):
    old, new = MUTATIONS[mutation]
    cell = written("LSTM", "one product for all gates", change=lambda text: text.replace(old, new))
    cell.weights["last_axis"] = np.array([1])
    (loop,) = rewritten(cell.model(), target="onnx")[1].loops
    assert (loop.reasons[0].code, loop.reasons[0].detail) == (code, detail)


VARIATIONS = {
    "the new value taken away": ("c1 = Add (fc, ig)", "c1 = Sub (fc, ig)", {}),
    "a wider tanh": ("g = Tanh (a_g)", "g0 = Tanh (a_g)  g = Mul (g0, two)", {"activations": [b"Sigmoid", b"ScaledTanh", b"Tanh"]}),
    "no output activation": ("t = Tanh (c1)", "t = Identity (c1)", {"activations": [b"Sigmoid", b"Tanh", b"Affine"]}),
    "a new value without activation": ("g = Tanh (a_g)", "g = Identity (a_g)", {"activations": [b"Sigmoid", b"Affine", b"Tanh"]}),
    "relu": ("g = Tanh (a_g)", "g = Max (a_g, zero)", {"activations": [b"Sigmoid", b"Relu", b"Tanh"]}),
    "gates clipped": (
        "i = Sigmoid (a_i)  f = Sigmoid (a_f)  g = Tanh (a_g)  o = Sigmoid (a_o)",
        """ci = Clip (a_i, minus_two, two)  i = Sigmoid (ci)  cf0 = Max (a_f, minus_two)  cf = Min (two, cf0)  f = Sigmoid (cf)
        cg = Clip (a_g, minus_two, two)  g = Tanh (cg)  co = Clip (a_o, minus_two, two)  o = Sigmoid (co)""",
        {"clip": 2.0},
    ),
}


@pytest.mark.parametrize("variation", VARIATIONS)
def test_what_the_operator_says_otherwise_fuses(variation):
    old, new, expected = VARIATIONS[variation]
    cell = written("LSTM", "one product for all gates", change=lambda text: text.replace(old, new))
    assert new in cell.body
    cell.weights.update({"two": np.float32(2), "minus_two": np.float32(-2), "zero": np.float32(0)})
    cell.weights["W"] *= 4
    (node,) = fused(cell)
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    assert node.op_type == "LSTM"
    assert {key: attributes.get(key) for key in ("activations", "clip")} == {"activations": None, "clip": None} | expected


HARD_SIGMOIDS = {
    "HardSigmoid": "{y} = HardSigmoid <alpha = 0.25> ({x})",
    "Clip of the sum": "{y}_s = Add ({x}, three)  {y}_c = Clip ({y}_s, zero, six)  {y} = Mul ({y}_c, sixth)",
    "Clip before the sum": "{y}_c = Clip ({x}, minus_three, three)  {y}_s = Add ({y}_c, three)  {y} = Div ({y}_s, six)",
    "Relu and Min": "{y}_s = Add ({x}, three)  {y}_r = Relu ({y}_s)  {y}_c = Min ({y}_r, six)  {y} = Mul ({y}_c, sixth)",
}


@pytest.mark.parametrize("spelling", HARD_SIGMOIDS)
@pytest.mark.parametrize("kind", ["GRU keeping the rest", "LSTM", "LSTM coupled"])
def test_a_hard_sigmoid_is_read_from_its_parts(spelling, kind):
    numbers = {"three": 3, "minus_three": -3, "six": 6, "zero": 0, "sixth": 1 / 6}
    cell = written(kind, "split by Slice", spelling, sigmoids=HARD_SIGMOIDS)
    cell.weights.update({name: np.float32(number) for name, number in numbers.items()})
    cell.weights["W"] *= 4
    (node,) = fused(cell)
    assert node.op_type == kind.split(" ")[0]


@pytest.mark.parametrize(
    ("cell_text", "activations"),
    [
        ("h1 = Identity (a_i)", [b"Affine"]),
        ("t = Tanh (a_i)  h1 = Mul (t, two)", [b"ScaledTanh"]),
        ("h1 = Clip (a_i, zero, two)", [b"Relu"]),
        ("h1 = LeakyRelu <alpha = 0.2> (a_i)", [b"LeakyRelu"]),
        ("h1 = Elu (a_i)", [b"Elu"]),
        ("h1 = Softsign (a_i)", [b"Softsign"]),
        ("h1 = ThresholdedRelu <alpha = 0.3> (a_i)", [b"ThresholdedRelu"]),
    ],
)
def test_an_elman_cell_has_any_activation(cell_text, activations):
    cell = written("RNN", "split by Slice", change=lambda text: text.replace("h1 = Tanh (a_i)", cell_text))
    cell.weights.update({"two": np.float32(2), "zero": np.float32(0)})
    (node,) = fused(cell)
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    assert (node.op_type, attributes["activations"]) == ("RNN", activations)


def test_what_each_unit_does_by_itself_becomes_no_matrix():
    cell = written("RNN", "split by Slice", change=lambda text: text.replace("h1 = Tanh (a_i)", "h1 = Identity (a_i)"))
    cell.weights["R"] = np.diag(np.diag(cell.weights["R"]))
    (node,) = fused(cell)
    assert node.op_type == "Scan"


def test_other_nodes_of_the_body_leave_it():
    cell = written(
        "LSTM", "Gemm with transposed weights", change=lambda text: text.replace("h1 = Mul (o, t)", "h1 = Mul (o, t)  e = Exp (h1)")
    )
    (node,) = fused(cell)
    assert node.op_type == "LSTM"


def giving_cells(cell: Written, **sizes: int) -> onnx.ModelProto:
    """Return the model of `cell` that outputs the cell state of each step instead of the hidden state."""
    model = cell.model(**sizes)
    scan = next(node for node in model.graph.node if node.op_type == "Scan")
    body = next(attribute.g for attribute in scan.attribute if attribute.name == "body")
    body.node[-1].input[0] = "c1"
    return model


@pytest.mark.parametrize("kind", ["LSTM", "LSTM peepholes", "LSTM coupled"])
@pytest.mark.parametrize(
    ("target", "rows", "found"), [("onnx", 2, {"LSTM", "Scan"}), ("cpu", 2, {"LSTM", "Scan"}), ("cpu", 64, {"Scan"})]
)
def test_cell_states_that_are_needed_in_each_step_are_computed_beside_the_node(kind, target, rows, found):
    cell = written(kind, "split by Slice")
    model = giving_cells(cell, rows=rows)
    loaded, report = rewritten(model, target=target, debug=True)
    result = to_caller_type(loaded)
    assert {node.op_type for node in result.graph.node} & {*NODES, "Scan"} == found
    assert ("COST-NATIVE" in [reason.code for reason in report.loops[0].reasons]) == ("LSTM" not in found)
    assert_same_numbers(ort_run(result, cell.feeds(rows=rows)), ort_run(model, cell.feeds(rows=rows)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "rows", "native"), [("RNN", 1, True), ("RNN", 8, False), ("GRU", 8, True), ("GRU", 64, False), ("LSTM", 8, True)]
)
def test_on_a_cpu_the_node_is_taken_where_it_is_faster(kind, rows, native):
    cell = written(kind, "split by Slice")
    (node,) = fused(cell, target="cpu", rows=rows)
    assert node.op_type == (kind if native else "Scan")


def test_two_layers_in_one_body_become_two_nodes():
    layer = written("RNN", "Gemm with transposed weights").body.replace("h1", "q1")
    second = written("LSTM", "input and state side by side")
    text = f"""<ir_version: 8, opset_import: ["": 18]>
    g (float[2,4] q0, float[2,4] h0, float[2,4] c0, float[6,2,3] xs) => (float[2,4] qn, float[2,4] hn, float[2,4] cn, float[6,2,4] ys) {{
        qn, hn, cn, ys = Scan <num_scan_inputs = 1, body = step (float[2,4] q, float[2,4] h, float[2,4] c, float[2,3] x)
            => (float[2,4] q1, float[2,4] h1, float[2,4] c1, float[2,4] y) {{
            {layer.replace("(h, R", "(q, R").replace("xw", "lw").replace("hr", "lr").replace("a_i", "l_i").replace("u_i", "lu_i").replace("v_i", "lv_i")}
            {second.body.replace("(x, h)", "(q1, h)").replace("WR", "WR2").replace("B)", "B2)")}
            y = Identity (h1)
        }}> (q0, h0, c0, xs) }}"""
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(3)
    weights = {"W": (4, 3), "R": (4, 4), "B": (4,), "WR2": (8, 16), "B2": (16,)}
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in weights.items()}
    arrays["one"] = np.ones(1, np.float32)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    feeds = {name: rng.standard_normal((2, 4)).astype(np.float32) for name in ("q0", "h0", "c0")}
    feeds["xs"] = rng.standard_normal((6, 2, 3)).astype(np.float32)
    loaded, _ = rewritten(model, target="onnx", debug=True)
    result = to_caller_type(loaded)
    assert sorted(node.op_type for node in result.graph.node if node.op_type in {*NODES, "Scan"}) == ["LSTM", "RNN"]
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)


def test_every_encoding_is_written_for_every_cell():
    assert len(ENCODINGS) >= 12
    assert len(CELLS) == 6 * len(ENCODINGS)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_batch_of_no_rows_still_runs(kind):
    """onnxruntime aborts the process if a GRU or LSTM node has an empty batch."""
    cell = written(kind, "split by Slice")
    model = cell.model(steps="T", rows="B")
    result = to_caller_type(rewritten(model, debug=True)[0])
    for rows in (0, 2):
        feeds = cell.feeds(steps=3, rows=rows)
        assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "rows"), [("RNN", 2), ("GRU", 2), ("GRU", "B"), ("LSTM", 2), ("LSTM", "B")])
def test_no_steps_leave_the_states_as_they_were(kind, rows):
    """With zero steps, onnxruntime rejects a Scan, aborts on a GRU node, and returns arbitrary numbers for an LSTM."""
    cell = written(kind, "split by Slice")
    result = to_caller_type(rewritten(cell.model(steps="T", rows=rows), debug=True)[0])
    feeds = cell.feeds(steps=0, rows=2)
    *finals, sequence = ort_run(result, feeds)
    assert_same_numbers(finals, [feeds[f"{state}0"] for state in cell.states])
    assert sequence.shape == (0, 2, 4)


def test_softplus_stays_out_of_the_node_where_it_overflows():
    cell = written("RNN", "split by Slice", change=lambda text: text.replace("h1 = Tanh (a_i)", "h1 = Softplus (a_i)"))
    feeds = cell.feeds()
    feeds["xs"] *= 100
    (node,) = fused(cell, feeds=feeds)
    assert node.op_type == "Scan"


def test_a_batch_that_is_known_to_have_no_rows_keeps_its_loop():
    (node,) = fused(written("LSTM", "split by Slice"), target="cpu", rows=0)
    assert node.op_type == "Scan"


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_features_of_unknown_number_are_counted_by_the_weights(kind):
    cell = written(kind, "split by Slice")
    model = cell.model(rows="B", steps="T")
    (loop,) = [node for node in model.graph.node if node.op_type == "Scan"]
    body = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    for value in [*model.graph.input, *model.graph.output, *body.input, *body.output]:
        value.type.tensor_type.shape.dim[-1].dim_param = "I" if value.name in ("xs", "x") else "H"
    result = to_caller_type(rewritten(model, target="onnx", debug=True)[0])
    assert NODES & {node.op_type for node, _ in all_nodes(result)}
    assert_same_numbers(ort_run(result, cell.feeds()), ort_run(model, cell.feeds()), rtol=1e-4, atol=1e-5)


def test_a_name_that_counts_rows_too_tells_nothing_of_features():
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[N, N] h0, float[N, N, N] xs) => (float[A, B] hn)
        <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2, 2] r = {1, 2, 3, 4}> {
        hn, ys = Scan <num_scan_inputs = 1, body = step (float[N, N] h, float[N, N] x) => (float[N, N] h1, float[N, N] y) {
            a = MatMul (x, w) c = MatMul (h, r) d = Add (a, c) h1 = Tanh (d) y = Neg (h1) }> (h0, xs) }"""
    model = onnx.parser.parse_model(text)
    result = to_caller_type(rewritten(model, target="onnx")[0])
    feeds = {"h0": np.ones((5, 2), np.float32), "xs": np.ones((4, 5, 3), np.float32)}
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-4, atol=1e-5)


def test_a_cast_of_the_hidden_state_is_another_value():
    text = """g (float16[2,3] s, float[2,3] t, float16[T,2,3] xs) => (float16[2,3] z, float[2,3] w)
        <float16[3,3] W = {15360, 0, 13312, 14336, 15360, 0, 0, 48128, 14336}, float16[3,3] R = {14336, 0, 15360, 48128, 13312, 0, 0, 15360, 0}> {
        z, w = Scan <num_scan_inputs = 1, body = b (float16[2,3] h, float[2,3] k, float16[2,3] x) => (float16[2,3] h1, float[2,3] k1) {
            a = MatMul (x, W) r = MatMul (h, R) q = Add (a, r) h1 = Tanh (q) c = Cast <to = 1> (h1) m = Sin (k) k1 = Add (m, c) }> (s, t, xs)
    }"""
    model = model_from_text(text, 18)
    result = to_caller_type(rewritten(model, target="coreml", debug=True)[0])
    assert "RNN" in {node.op_type for node, _ in all_nodes(result)}
    half = np.float16([[0.5, -1, 0], [1, 0.25, 2]])
    feeds = {"s": half, "t": half.astype(np.float32), "xs": np.stack([half, half / 2, -half])}
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), rtol=1e-2, atol=1e-2)
