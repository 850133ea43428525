"""One opset-8 Scan at a time: what it becomes, and what its lengths mean."""

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.running.graph_index import all_nodes
from rewrites.base.errors import MalformedLoop, MigrationError
from rewrites.base.not_applicable import NotApplicable
from rewrites.driver.prepare import prepare
from rewrites.driver.tidying import tidy
from rewrites.migration import LiftedScan, migrate
from tests.rewrites.apply import context_of, read
from tests.support.runtime import ort_run
from tests.support.text import assert_same_numbers, assert_text_equal

CELL = "cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) { s = Add (h, a) h1 = Tanh (s) k = Neg (h1) }"
FEEDS = {"h0": np.ones((3, 2), np.float32), "xs": np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 4, 2)}


def scan(
    lengths: str = "", body: str = CELL, attributes: str = "", sizes: str = "B,T", declared: str = "int64[B] n, ", weights: str = ""
) -> str:
    """A graph around one Scan over `xs` with the state `h0`; `lengths` names its lengths."""
    rows, steps = sizes.split(",")
    extra = declared if lengths and not weights else ""
    return f"""g ({extra}float[{rows},2] h0, float[{rows},{steps},2] xs) => (float[{rows},2] hn, float[{rows},{steps},2] ys) {weights} {{
        ["the scan"] hn, ys = Scan <num_scan_inputs = 1{attributes}, body = {body}> ({lengths}, h0, xs) }}"""


def lifted(text: str, target: int = 18) -> tuple[onnx.ModelProto, list[LiftedScan]]:
    ctx = context_of(read(text, 8, check=False))
    prepare(ctx)
    report = migrate(ctx, target)
    tidy(ctx)
    model = ir.to_proto(ctx.model)
    onnx.checker.check_model(model, full_check=True)
    return model, report.scans


def same(text: str, feeds: dict[str, Any], targets: tuple[int, ...] = (9, 11, 18)) -> LiftedScan:
    wanted = ort_run(read(text, 8, check=False), feeds)
    for target in targets:
        model, scans = lifted(text, target)
        assert_same_numbers(ort_run(model, feeds), wanted, why=f"opset {target}: ")
    return scans[-1]


def test_rows_become_an_axis_of_the_body():
    after, (scan_8,) = lifted(scan())
    assert_text_equal(
        after,
        """g (float[B,2] h0, float[B,T,2] xs) => (float[B,2] hn, float[B,T,2] ys) {
            first = Transpose <perm = [1, 0, 2]> (xs)
            hn, stacked = Scan <num_scan_inputs = 1, body = cell (float[B,2] h, float[B,2] a) => (float[B,2] h1, float[B,2] k) {
                s = Add (h, a) h1 = Tanh (s) k = Neg (h1)
            }> (h0, first)
            ys = Transpose <perm = [1, 0, 2]> (stacked)
        }""",
    )
    assert scan_8 == LiftedScan("the scan", "batched", False)
    assert after.graph.node[1].name == "the scan"
    same(scan(), FEEDS)


def test_a_single_row_is_scanned_as_it_is():
    after, (scan_8,) = lifted(scan(sizes="1,T"))
    assert [node.op_type for node in after.graph.node] == ["Squeeze", "Squeeze", "Scan", "Unsqueeze", "Unsqueeze"]
    assert scan_8.form == "one row"
    same(scan(sizes="1,T"), {"h0": FEEDS["h0"][:1], "xs": FEEDS["xs"][:1]})


def test_a_body_without_a_batching_rule_runs_row_by_row_and_says_why():
    body = "cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) { h1, c = my.Odd (h, a) k = Neg (h1) }"
    text = f'<ir_version: 8, opset_import: ["": 8, "my": 1]> {scan(body=body)}'
    ctx = context_of(onnx.parser.parse_model(text))
    prepare(ctx)
    (scan_8,) = migrate(ctx, 18).scans
    assert scan_8.form == "row by row"
    assert scan_8.reason is not None
    assert scan_8.reason.code == "NO-BATCHING-RULE"
    tidy(ctx)
    (outer,) = ctx.model.graph
    (inner,) = outer.attributes["body"].as_graph()
    assert (outer.op_type, inner.op_type) == ("Scan", "Scan")


def test_rows_run_one_by_one_keep_their_numbers(monkeypatch):
    monkeypatch.setattr("rewrites.migration.scan_8.lift._batched", lambda *_: NotApplicable("NO-BATCHING-RULE", "none"))
    for attributes in ("", ", directions = [1]"):
        assert same(scan(attributes=attributes), FEEDS).form == "row by row"
        assert same(scan("n", attributes=attributes), {**FEEDS, "n": np.array([2, 4, 1])}).form == "row by row"


def test_a_branch_taken_row_by_row_keeps_its_numbers():
    body = """cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {
        zero = Constant <value = float {0}> () s = ReduceSum <keepdims = 0> (a) c = Less (s, zero)
        p = If (c) <then_branch = t () => (float[2] u) { u = Exp (h) }, else_branch = e () => (float[2] v) { v = Neg (a) }>
        h1 = Tanh (p) k = Add (h1, a) }"""
    for attributes in ("", ", directions = [1]"):
        same(scan(body=body, attributes=attributes), FEEDS)
        same(scan("n", body=body, attributes=attributes), {**FEEDS, "n": np.array([2, 4, 1])})


@pytest.mark.parametrize("declared", ["", "float[]"])
def test_results_of_unknown_rank_end_with_their_row(declared: str):
    """The sizes of the Reshape are computed, as they are in this opset, where constants hold floats only."""
    body = f"""cell (float[2] h, float[2] a) => (float[2] h1, {declared} k) {{
        two = Constant <value = float[1] {{2}}> () one = Constant <value = float[1] {{1}}> () f = Mul (two, one) size = Cast <to = 7> (f)
        h1 = Add (h, a) k = Reshape (h1, size) }}"""
    for lengths in ([3, 1, 2], [1, 2, 4]):
        same(scan("n", body=body), {**FEEDS, "n": np.array(lengths)})


def test_random_numbers_are_drawn_for_each_row():
    body = """cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {
        r = RandomUniform <shape = [2], seed = 3.0> () h1 = Add (h, a) k = Add (a, r) }"""
    same(scan(body=body), FEEDS)
    with pytest.raises(MigrationError, match=r"^Scan 'the scan' cannot be lifted from opset 8: its RandomUniform 'r' draws"):
        lifted(scan("n", body=body))


def test_steps_past_the_end_run_no_cell_on_lengths_that_cannot_be():
    text = """g (int64[B] n, float[B,1] h0, float[B,T,3] xs) => (float[B,1] hn, float[B,T,1] ys)
    <float[1,1,1] w = {0.5}, int64[3] cube = {3,1,1}, int64[1] flat = {1}> {
        hn, ys = Scan <num_scan_inputs = 1, body = cell (float[1] h, float[3] a) => (float[1] h1, float[1] k) {
            m = Cast <to = 6> (h) x = Reshape (a, cube) y, yh = RNN <hidden_size = 1> (x, w, w, , m) k = Reshape (yh, flat)
            one = Constant <value = float[1] {1}> () h1 = Sub (h, one)
        }> (n, h0, xs) }"""
    feeds = {"h0": np.array([[2], [3]], np.float32), "xs": np.ones((2, 4, 3), np.float32), "n": np.array([2, 3])}
    same(text, feeds)


@pytest.mark.parametrize("attributes", ["", ", directions = [1]"])
@pytest.mark.parametrize("lengths", [[4, 4, 4], [2, 4, 1], [1, 1, 1], [3, 2, 3]])
def test_rows_end_at_their_lengths(lengths: list[int], attributes: str):
    scan_8 = same(scan("n", attributes=attributes), {**FEEDS, "n": np.array(lengths)})
    assert (scan_8.form, scan_8.lengths) == ("batched", True)
    weights = f"<int64[3] n = {{{', '.join(map(str, lengths))}}}>"
    scan_8 = same(scan("n", attributes=attributes, weights=weights, sizes="3,4"), FEEDS)
    assert scan_8.lengths == (lengths != [4, 4, 4])
    same(scan("n", attributes=attributes, weights=weights, sizes="3,T"), FEEDS)
    one = {"h0": FEEDS["h0"][:1], "xs": FEEDS["xs"][:1], "n": np.array(lengths[:1])}
    assert same(scan("n", attributes=attributes, sizes="1,T", declared="int64[1] n, "), one).form == "one row"


@pytest.mark.parametrize("target", [9, 10, 13, 18, 23])
@pytest.mark.parametrize("attributes", ["", ", directions = [1]"])
def test_steps_up_to_the_longest_row_keep_the_number_of_rows(attributes: str, target: int):
    after, _ = lifted(scan("n", attributes=attributes), target)
    (node,) = (node for node in after.graph.node if node.op_type == "Scan")
    stacks = {info.name: info.type.tensor_type.shape.dim for info in after.graph.value_info}
    assert [[dim.dim_param or dim.dim_value for dim in stacks[name]][1:] for name in node.input[1:]] == [["B", 2], ["B", 1]]


DECAY = "cell ({0}[2] h, {0}[2] a) => ({0}[2] h1, {0}[2] k) {{ s = Mul (h, h) h1 = Sub (a, s) k = Neg (h1) }}"


@pytest.mark.parametrize("attributes", ["", ", directions = [1]"])
@pytest.mark.parametrize(
    ("kind", "body"), [("float", CELL), ("float", DECAY.format("float")), ("double", DECAY.format("double"))], ids=str
)
def test_rows_with_lengths_get_a_loop_plan(kind: str, body: str, attributes: str):
    text = scan("n", body, attributes).replace("float", kind)
    (loop,) = ortscan.explain(read(text, 8, check=False), native=True).loops
    assert loop.fate == "compiled"
    same(text, {name: value.astype(kind.replace("float", "float32")) for name, value in FEEDS.items()} | {"n": np.array([2, 4, 1])})


def test_a_cell_over_rows_with_lengths_becomes_a_native_node():
    cell = "cell (float[64] h, float[64] a) => (float[64] h1, float[64] k) { r = Unsqueeze <axes = [0]> (h) p = MatMul (r, w) q = Squeeze <axes = [0]> (p) s = Add (q, a) h1 = Tanh (s) k = Identity (h1) }"
    model = read(scan("n", cell).replace(",2]", ",64]"), 8, check=False)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.eye(64, dtype=np.float32) / 2, "w"))
    (loop,) = ortscan.explain(model, dims={"B": 2, "T": 64}).loops
    assert loop.fired[0].made.native == "RNN"
    numbers = np.random.default_rng(0).standard_normal((2, 6, 64)).astype(np.float32)
    feeds = {"h0": numbers[:, 0], "xs": numbers[:, 1:], "n": np.array([2, 5])}
    after = ortscan.optimize(model, dims={"B": 2, "T": 64}, verify=False)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    assert "Scan" not in {node.op_type for node, _ in all_nodes(after)}


@pytest.mark.parametrize(
    ("step", "frozen"),
    [
        ("p = MatMul (h, h) q = Mul (h, p) s = Add (q, a) h1 = Tanh (s)", True),
        ("p = MatMul (a, a) q = Mul (a, p) h1 = Tanh (q)", False),
        ("s = Add (h, a) h1 = Tanh (s)", False),
    ],
    ids=["a product of a state", "no state", "no product"],
)
def test_an_output_that_is_a_next_state_may_freeze_with_it(step: str, frozen: bool):
    text = scan("n", f"cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {{ {step} k = Identity (h1) }}")
    model, _ = lifted(text)
    (body,) = (node.attribute[0].g for node in model.graph.node if node.op_type == "Scan" for node in [node])
    masked = next(node.output[0] for node in body.node if node.op_type == "Where")
    copied = next((node.input[0] for node in body.node if node.output[0] == body.output[1].name and node.op_type == "Identity"), "")
    assert (copied == masked) == frozen
    same(text, FEEDS | {"n": np.array([2, 4, 1])})


def test_lengths_that_are_known_to_be_full_leave_no_trace():
    after, (scan_8,) = lifted(scan("n", weights="<int64[3] n = {4, 4, 4}>", sizes="3,4"))
    assert [node.op_type for node in after.graph.node] == ["Transpose", "Scan", "Transpose"]
    assert not scan_8.lengths


@pytest.mark.parametrize("sizes", ["B,T", "3,4", "1,T"])
def test_a_row_of_no_steps_keeps_its_state_and_gives_zeros(sizes: str):
    """The operator's text allows it; onnxruntime refuses it in opset 8."""
    rows = 1 if sizes[0] == "1" else 3
    feeds = {key: array[:rows] for key, array in FEEDS.items()}
    after, _ = lifted(scan("n", sizes=sizes, declared=f"int64[{rows}] n, "))
    final, stacked = ort_run(after, {**feeds, "n": np.array([0, 2, 4][:rows])})
    np.testing.assert_array_equal(final[0], feeds["h0"][0])
    np.testing.assert_array_equal(stacked[0], np.zeros((4, 2), np.float32))


@pytest.mark.parametrize("target", [9, 18])
@pytest.mark.parametrize("lengths", [[5, 1, 1], [1, -1, 1], [1, 1], [1, 1, 1, 1]])
def test_lengths_that_cannot_be_are_refused_at_run_time_too(lengths: list[int], target: int):
    text = scan("n", declared="int64[N] n, ")
    for model in (read(text, 8, check=False), lifted(text, target)[0]):
        with pytest.raises(Exception, match="ONNXRuntimeError"):
            ort_run(model, {**FEEDS, "n": np.array(lengths)})


@pytest.mark.parametrize(
    ("lengths", "sentence"),
    [
        ("int64[3] n = {1, 5, 1}", r"sequence_lens holds \[1, 5, 1\], but must be in 0\.\.4"),
        ("int64[3] n = {1, -1, 1}", r"sequence_lens holds \[1, -1, 1\], but must be"),
        ("int64[2] n = {1, 1}", "sequence_lens holds 2 lengths, but there are 3 rows"),
    ],
)
def test_constant_lengths_that_cannot_be_are_refused(lengths: str, sentence: str):
    with pytest.raises(MalformedLoop, match=f"^Scan 'the scan': {sentence}"):
        lifted(scan("n", weights=f"<{lengths}>", sizes="3,4"))


COUNTER = """cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {{
    zero = Constant <value = int64[1] {{0}}> () first = Slice <starts = [0], ends = [1]> (h) i = Cast <to = 7> (first)
    row = Gather (table, i) k = Squeeze <axes = [0]> (row)
    one = Constant <value = float {{1}}> () h1 = Add (h, one) }}"""


def test_a_step_past_the_end_of_its_row_looks_nothing_up():
    """A row that ends has counted as far as the table goes; one step more would fail."""
    body = COUNTER.format()
    text = scan("n", body=body, weights="").replace("int64[B] n, ", "int64[B] n, float[2,2] table, ")
    feeds = {**FEEDS, "h0": np.zeros((3, 2), np.float32), "n": np.array([2, 1, 2]), "table": np.eye(2, dtype=np.float32)}
    same(text, feeds)
    feeds = {**feeds, "n": np.array([2, 3, 2])}
    for model in (read(text, 8, check=False), lifted(text)[0]):
        with pytest.raises(Exception, match="indices element"):
            ort_run(model, feeds)


def test_a_step_past_the_end_of_its_row_divides_by_nothing():
    body = """cell (int32[2] h, int32[2] a) => (int32[2] h1, int32[2] k) {
        k = Div (h, a) one = Constant <value = int32[1] {1}> () h1 = Add (h, one) }"""
    text = scan("n", body=body).replace("float", "int32")
    xs = np.array([[[3, 2], [1, 1], [0, 0], [0, 0]], [[2, 2], [0, 0], [0, 0], [0, 0]], [[1, 2], [3, 4], [5, 6], [0, 1]]], np.int32)
    same(text, {"h0": np.full((3, 2), 9, np.int32), "xs": xs, "n": np.array([2, 1, 3])})


def test_a_scan_of_opset_8_inside_another():
    inner = "p, q = Scan <num_scan_inputs = 1, body = inner (float u, float v) => (float u1, float w) { u1 = Add (u, v) w = Mul (v, h) }> "
    body = f"""cell (float h, float[2,3] a) => (float h1, float[2,3] q) {{
        zeros = ReduceMin <axes = [1], keepdims = 0> (a) {inner} (, zeros, a) h1 = ReduceSum <keepdims = 0> (p) }}"""
    text = f"""g (float[B] h0, float[B,T,2,3] xs) => (float[B] hn, float[B,T,2,3] ys) {{
        hn, ys = Scan <num_scan_inputs = 1, body = {body}> (, h0, xs) }}"""
    feeds = {"h0": np.ones(2, np.float32), "xs": np.random.default_rng(0).standard_normal((2, 4, 2, 3)).astype(np.float32)}
    assert same(text, feeds).form == "batched"


def test_a_scan_of_opset_8_under_a_branch():
    text = f"""g (bool c, float[B,2] h0, float[B,T,2] xs) => (float[B,2] hn, float[B,T,2] ys) {{
        hn, ys = If (c) <
            then_branch = t () => (float[B,2] p, float[B,T,2] q) {{ p, q = Scan <num_scan_inputs = 1, body = {CELL}> (, h0, xs) }},
            else_branch = e () => (float[B,2] r, float[B,T,2] s) {{ r = Neg (h0) s = Neg (xs) }}> }}"""
    for flag in (True, False):
        same(text, {**FEEDS, "c": np.array(flag)})


def test_a_scan_of_opset_8_does_not_go_to_a_function_that_keeps_it():
    text = f"""<ir_version: 8, opset_import: ["": 8, "my": 1]> g (float[B,2] h0, float[B,T,2] xs) => (float[B,2] hn) {{
        hn = my.F (h0, xs) }}
    <domain: "my", opset_import: ["": 8]> F (h0, xs) => (hn) {{ hn, ys = Scan <num_scan_inputs = 1, body = {CELL}> ("", h0, xs) }}"""
    ctx = context_of(onnx.parser.parse_model(text))
    prepare(ctx)
    with pytest.raises(MigrationError, match="in the function F"):
        migrate(ctx, 18)


@pytest.mark.parametrize("direction", ["", ", directions = [1]"])
@pytest.mark.parametrize("operator", ["Softmax <axis = 0>", "LogSoftmax <axis = 0>", "Hardmax <axis = 0>"])
@pytest.mark.parametrize("row", ["2", "3,2"])
def test_states_that_are_declared_without_a_rank_have_that_of_the_next_ones(row: str, operator: str, direction: str):
    rank = len(row.split(","))
    text = f"""<ir_version: 8, opset_import: ["": 8]>
    g (float[] h0, float[] xs, int64[B] lens) => ({"float[B,2] hn, float[B,T,2] ys" if rank == 1 else "float[B,3,2] hn, float[B,T,3,2] ys"}) {{
        hn, ys = Scan <num_scan_inputs = 1{direction}, body = b (float[] h, float[] x) => (float[{row}] h1, float[{row}] y) {{
            r = {operator} (x)  h1 = Add (h, r)  y = Identity (h1)
        }}> (lens, h0, xs) }}"""
    shape = tuple(map(int, row.split(",")))
    numbers = np.random.default_rng(0).normal(size=(2, 6, *shape)).astype(np.float32)
    feeds = {"h0": numbers[:, 0], "xs": numbers[:, 1:], "lens": np.array([5, 2])}
    wanted = ort_run(read(text, 8, check=False), feeds)
    migrated = ortscan.migrate(read(text, 8, check=False), 18, verify=False)
    assert_same_numbers(ort_run(migrated, feeds), wanted)


def test_a_recurrent_node_of_the_body_does_not_run_on_an_empty_batch():
    """onnxruntime crashes on an LSTM without rows. An opset-8 Scan without rows fails before its body runs."""
    text = """g (float[B,2] h0, float[B,T,2] xs, float[S,N,2] q) => (float[B,2] hn, float[B,T,2] ys) <float[1,4,2] w = {1, 2, 3, 4, 5, 6, 7, 8},
        float[1,4,1] r = {1, 2, 3, 4}> {
        hn, ys = Scan <num_scan_inputs = 1, body = cell (float[2] h, float[2] a) => (float[2] h1, float[2] k) {
            p = LSTM <hidden_size = 1> (q, w, r) m = ReduceSum <keepdims = 0> (p) s = Add (h, a) h1 = Add (s, m) k = Tanh (h1) }> (, h0, xs) }"""
    model = read(text, 8, check=False)
    after = ortscan.migrate(model, opset=18, verify=False)
    feeds = {"h0": np.ones((2, 2), np.float32), "xs": np.ones((2, 4, 2), np.float32), "q": np.ones((3, 3, 2), np.float32)}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    empty = {"h0": feeds["h0"][:0], "xs": feeds["xs"][:0], "q": feeds["q"][:, :0]}
    assert [result.shape for result in ort_run(after, empty)] == [(0, 2), (0, 4, 2)]
