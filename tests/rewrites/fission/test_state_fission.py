"""States that do not need each other get loops of their own where something leaves then, and only there."""

import copy

import onnx
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from rewrites.cleanup import unused_scan_inputs
from rewrites.fission import loop_fission, state_fission
from rewrites.native import native_loop
from rewrites.recurrences.cells import recurrent_cell
from rewrites.repair import own_outputs
from tests.campaigns.fuzz.scan_cases import OPSETS, assert_same_as_steps, drawn_scans
from tests.rewrites.apply import apply, patches, read, reasons
from tests.rewrites.fission.harness import data, loops_of, scan
from tests.support.layers import layer_feeds, layers
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

RULES = [own_outputs, unused_scan_inputs, recurrent_cell, loop_fission, state_fission]
HALF = {"rtol": 1e-4, "atol": 1e-4}


def optimised(model: onnx.ModelProto, **options) -> onnx.ModelProto:
    """Rewrite by all rules and compare on onnxruntime and with the plain loop."""
    loaded, _ = rewritten(model, debug=True, **options)
    result = to_caller_type(loaded)
    onnx.checker.check_model(result, full_check=True)
    feeds = layer_feeds(model)
    found = ort_run(result, feeds)
    assert_same_numbers(found, ort_run(model, feeds), **HALF)
    assert_same_numbers(found, run_model(model, feeds), **HALF)
    return result


def products(model: onnx.ModelProto) -> list[int]:
    """How many products each loop keeps, and last how many are outside."""
    bodies = [attribute.g for node in loops_of(model) for attribute in node.attribute if attribute.name == "body"]
    return [sum(node.op_type == "MatMul" for node in graph.node) for graph in (*bodies, model.graph)]


@pytest.mark.long
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("cell", ["LayerNorm-LSTM", "sine cell"])
@pytest.mark.parametrize("backwards", [False, True])
def test_each_layer_gets_a_loop_and_its_input_projection_leaves(cell, old, backwards):
    ways = "scan_input_directions = [1], scan_output_directions = [1], " if backwards else ""
    model = layers([cell] * 3, 256, 1, steps=20, old=old, change=lambda text: text.replace("body = step", ways + "body = step"))
    assert products(optimised(model)) == [1, 1, 1, 3]


def test_layers_that_are_listed_the_other_way_round_are_split_too():
    model = layers(["sine cell"] * 2, 256, 1, steps=40)
    scan_node = model.graph.node[0]
    body = next(attribute.g for attribute in scan_node.attribute if attribute.name == "body")
    for values in (scan_node.input, scan_node.output, body.input, body.output):
        was = copy.deepcopy(list(values))
        del values[:]
        values.extend([*was[2:4], *was[:2], *was[4:]])
    assert products(optimised(model)) == [1, 1, 2]


@pytest.mark.parametrize(("hidden", "batch"), [(16, 1), (64, 8), (256, 32)])
def test_layers_stay_together_where_a_second_loop_would_gain_nothing(hidden, batch):
    model = layers(["sine cell"] * 2, hidden, batch, steps=30)
    _, report = rewritten(model)
    assert [loop.fate for loop in report.loops] == ["reduced"]
    assert "COST-SEPARATE" in reasons(report)
    assert len(loops_of(optimised(model))) == 1


@pytest.mark.parametrize("old", [False, True])
def test_a_cell_that_reads_a_layer_that_stays_leaves(old):
    result = optimised(layers(["sine cell", "LSTM"], 8, 1, steps=40, old=old))
    assert sorted(node.op_type for node in result.graph.node if node.op_type in ("Scan", "LSTM")) == ["LSTM", "Scan"]


def test_a_cell_between_layers_that_stay_leaves():
    result = optimised(layers(["sine cell", "LSTM", "sine cell"], 8, 1, steps=40))
    assert [node.op_type for node in result.graph.node if node.op_type in ("Scan", "LSTM")] == ["Scan", "LSTM", "Scan"]


def test_without_the_rule_for_cells_nothing_is_split_for_one():
    result = optimised(layers(["sine cell", "LSTM"], 8, 1, steps=40), skip=["recurrent-cell"])
    assert len(loops_of(result)) == 1


def test_layers_that_feed_each_other_stay_together():
    model = layers(
        ["sine cell"] * 2, 256, 1, steps=40, change=lambda text: text.replace("p0s = Sin(p0z)", "p0q = Add(p0z, h1) p0s = Sin(p0q)")
    )
    _, report = rewritten(model)
    assert len(loops_of(optimised(model))) == 1
    assert "COST-SEPARATE" not in reasons(report)


def test_what_is_carried_must_fit_in_memory():
    model = layers(["LSTM", "sine cell", "LSTM"], 8, 1, steps=50)
    _, report = rewritten(model, memory_budget=1000)
    assert "MEMORY-BUDGET" in reasons(report)


def forced(text: str, monkeypatch: pytest.MonkeyPatch, **options) -> onnx.ModelProto:
    """Split wherever it can be done, whatever it gains."""
    monkeypatch.setattr(state_fission, "_would_be_replaced", lambda *_: True)
    before = read(text, 18)
    feeds = data(before)
    after, report = apply(before, [own_outputs, unused_scan_inputs, state_fission], feeds=feeds, **options)
    assert_same_numbers(ort_run(after, feeds), run_model(before, feeds))
    assert "state-fission" in patches(report)
    return after


def bodies(model: onnx.ModelProto) -> list[list[str]]:
    graphs = [attribute.g for node in loops_of(model) for attribute in node.attribute if attribute.name == "body"]
    return [sorted(node.op_type for node in graph.node if node.op_type != "Identity") for graph in graphs]


def test_what_is_smallest_is_carried(monkeypatch):
    wide = "a = Sin(g_next)  b = Concat <axis: int = 0> (a, a, a, a)  c = Cos(b)  d = ReduceMax <keepdims: int = 0> (c)  e = Neg(d)"
    text = scan(f"p = Add(x, g)  g_next = Tanh(p)  {wide}  f = Mul(e, k)  k_next = Add(f, x)", "", states="g k")
    after = forced(text, monkeypatch)
    assert bodies(after) in (
        [["Add", "Concat", "Cos", "ReduceMax", "Sin", "Tanh"], ["Add", "Mul", "Neg"]],
        [["Add", "Concat", "Cos", "Neg", "ReduceMax", "Sin", "Tanh"], ["Add", "Mul"]],
    )


def test_what_two_derived_values_are_made_from_is_carried_once(monkeypatch):
    text = scan(
        "p = Add(x, g)  g_next = Tanh(p)  a = Sin(g_next)  b = Cos(g_next)  e = Mul(a, k)  f = Add(b, e)  k_next = Neg(f)",
        "",
        states="g k",
    )
    after = forced(text, monkeypatch)
    assert bodies(after) == [["Add", "Tanh"], ["Add", "Cos", "Mul", "Neg", "Sin"]]


def test_work_on_inputs_that_both_need_is_done_in_both(monkeypatch):
    text = scan("a = Sin(x)  p = Add(a, g)  g_next = Tanh(p)  b = Mul(a, k)  k_next = Cos(b)", "", states="g k")
    assert sorted(bodies(forced(text, monkeypatch))) == [["Add", "Sin", "Tanh"], ["Cos", "Mul", "Sin"]]


def test_a_branch_that_both_need_is_taken_once(monkeypatch):
    text = scan(
        """zero = Constant <value_float: float = 0.0> ()  s = ReduceSum <keepdims: int = 0> (x)  c = Less(s, zero)
        a = If (c) <then_branch: graph = yes () => (float[3] t) { t = Sin(x) }, else_branch: graph = no () => (float[3] u) { u = Neg(x) }>
        p = Add(a, g)  g_next = Tanh(p)  b = Mul(a, k)  k_next = Cos(b)""",
        "",
        states="g k",
    )
    assert sum("If" in ops for ops in bodies(forced(text, monkeypatch))) == 1


@pytest.mark.parametrize("way", ["0, 0", "1, 1", "1, 0"])
def test_old_and_new_values_results_and_branches_cross_in_every_direction(monkeypatch, way):
    text = scan(
        """p = Add(x, g)  g_next = Tanh(p)  q = Mul(g, u)  zero = Constant <value_float: float = 0.0> ()
        s = ReduceSum <keepdims: int = 0> (q)  c = Less(s, zero)
        b = If (c) <then_branch: graph = yes () => (float[3] t) { t = Add(g_next, k) },
            else_branch: graph = no () => (float[3] f) { f = Sub(k, x) }>
        k_next = Cos(b)  m = Mul(k, g)  r = Add(m, o)  o_next = Sin(r)  y = Exp(g)  z = Add(k_next, g_next)""",
        "y z",
        states="o g k",
        scans="x u",
        attributes=f", scan_input_directions: ints = [{way}], scan_output_directions: ints = [1, 0]",
    )
    assert len(loops_of(forced(text, monkeypatch))) == 3


def test_a_state_that_reads_no_input_still_counts_the_steps(monkeypatch):
    text = scan("p = Add(x, g)  g_next = Tanh(p)  k_next = Cos(k)", "", states="g k")
    assert len(loops_of(forced(text, monkeypatch))) == 2


def test_a_value_of_unknown_rank_is_not_carried():
    text = """main (float[3] g0, float[3] k0, float[5, 3] xs, int64[N] dims) => (float[3] g, float[3] k) {
        g, k = Scan <num_scan_inputs: int = 1, body: graph = body (float[3] g_in, float[3] k_in, float[3] x)
            => (float[3] g_out, float[3] k_out) {
            p = Add(x, g_in)  g_out = Tanh(p)  r = Reshape(g_out, dims)  q = ReduceMax <keepdims: int = 0> (r)
            m = Mul(q, k_in)  k_out = Cos(m)
        }> (g0, k0, xs)
    }"""
    after, report = apply(text, RULES)
    assert "COST-SEPARATE" in reasons(report)
    assert len(loops_of(after)) == 1


def test_a_state_that_only_results_need_and_that_is_no_recurrence_leaves():
    text = scan(
        "p = Add(x, g)  g_next = Tanh(p)  q = Sin(g_next)  k_next = Cos(q)  r = Exp(k)  y = Mul(r, g)  m_next = Neg(k)",
        "y",
        states="g k m",
    )
    before = read(text)
    feeds = data(before)
    after, _ = apply(before, RULES, feeds=feeds)
    assert_same_numbers(ort_run(after, feeds), run_model(before, feeds))
    assert bodies(after) == [["Add", "Tanh"]]


@pytest.mark.parametrize(("other", "made"), [("Shrink", ["state-fission", "native-loop"]), ("Neg", ["native-loop"])])
def test_states_that_have_a_plan_leave_others_that_have_none(other: str, made: list[str]) -> None:
    text = scan(f"p = Mul(g, x)  g_next = Add(p, x)  q = {other}(k)  k_next = Sin(q)  y = Neg(g_next)", "y", states="g k")
    if other == "Neg":
        text = text.replace("Sin", "Tanh")
    _, report = apply(text, [state_fission, native_loop])
    assert patches(report) == made


def test_a_state_that_is_but_a_copy_of_what_was_stays():
    text = scan("p = Add(x, g)  g_next = Tanh(p)  k_next = Identity(g)", "", states="g k")
    after, _ = apply(text, RULES)
    assert len(loops_of(after)[0].output) == 2


@pytest.mark.long
@pytest.mark.parametrize("opset", [opset for opset in OPSETS if opset > 8])
def test_random_loops_keep_their_numbers_wherever_they_are_cut(opset, monkeypatch):
    monkeypatch.setattr(state_fission, "_would_be_replaced", lambda *_: True)
    for case in drawn_scans(2, opset, "random_body", "running", "delay_line", "random_body"):
        result = to_caller_type(rewritten(case.model, debug=True)[0])
        onnx.checker.check_model(result, full_check=True)
        assert_same_as_steps(case, result)


@pytest.mark.parametrize("old", [False, True])
def test_a_cell_of_free_sizes_leaves_too(old):
    def freed(text: str) -> str:
        return text.replace("float[88,77,", "float[T,B,").replace("float[77,", "float[B,")

    model = layers(["sine cell", "LSTM"], 8, 77, steps=88, old=old, change=freed)
    result = to_caller_type(rewritten(model, debug=True)[0])
    assert len(loops_of(result)) == 1
    feeds = data(model, T=5, B=2)
    assert_same_numbers(ort_run(result, feeds), ort_run(model, feeds), **HALF)


READS_OF_DELAYS = {
    "a sum of products": "m = Mul (b, d1)  s = ReduceSum <keepdims = 0> (m)  r = Reshape (s, one)",
    "a product of matrices": "dr = Unsqueeze (d1, zero)  bc = Unsqueeze (b, one)  m = MatMul (dr, bc)  r = Reshape (m, one)",
    "the smallest": "m = Add (b, d1)  s = ReduceMin <keepdims = 0> (m)  r = Reshape (s, one)",
}


@pytest.mark.parametrize("opset", [18, 21])
@pytest.mark.parametrize("reading", READS_OF_DELAYS)
def test_what_reads_a_delay_line_does_not_keep_its_loop(reading: str, opset: int) -> None:
    text = f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[200,1] xs, float[6] b, float[1] k0) => (float[1] k, float[200,1] ys)
        <float[6] d0 = {{0, 0, 0, 0, 0, 0}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{-1}}> {{
        d, k, ys = Scan <num_scan_inputs = 1, body = b (float[6] d, float[1] k, float[1] x) => (float[6] d1, float[1] k1, float[1] y) {{
            older = Slice (d, zero, last)  d1 = Concat <axis = 0> (x, older)  {READS_OF_DELAYS[reading]}
            t = Sub (r, k)  k1 = Tanh (t)  y = Identity (k1) }}> (d0, k0, xs) }}"""
    model = onnx.parser.parse_model(text)
    _, report = rewritten(model)
    fired = [patch.rule for loop in report.loops for patch in loop.fired]
    assert {"state-fission", "constant-filter"} <= set(fired) or "delay-lines" in fired
    loops = [node for node in optimised(model).graph.node if node.op_type == "Scan"]
    assert all(len(node.input) == 2 for node in loops)  # a state and a scan input: the delay line is gone
    assert len(loops) <= 1
