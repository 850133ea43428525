"""Functions with a loop are inlined exactly. All others, and those that cannot be inlined, are kept."""

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from ortscan.modelio import Inlining, inline_functions_with_loops, load, to_caller_type
from tests.support.runtime import ort_run

HEADER = '<ir_version: 10, opset_import: ["": 18, "my": 1]>'
X = np.arange(6, dtype=np.float32).reshape(3, 2)

SUM = "Scan <num_scan_inputs = 1, body = b (float[?] p, float[?] q) => (float[?] r, float[?] w) { r = Add (p, q) w = Neg (r) }>"

SCANNING = """
<domain: "my", opset_import: ["": 18]>
Cum <alpha, beta: float = 3.0> (s0, x) => (s1, ys) {
    factor = Constant <value_float: float = @beta> ()
    s1, ys = Scan <num_scan_inputs = 1, body = b (float[n] s, float[n] x_t) => (float[n] sn, float[n] y) {
        k = Constant <value_float: float = @alpha> ()
        a = Mul (x_t, k)
        scaled = Mul (a, factor)
        sn = Add (s, scaled)
        y = Identity (sn)
    }> (s0, x)
}
"""


def inlined(graph: str, *functions: str, header: str = HEADER) -> tuple[onnx.ModelProto, onnx.ModelProto, Inlining]:
    """Return the model, the model with loops inlined, and a description of the change."""
    before = onnx.parser.parse_model(header + graph + "".join(functions))
    loaded = load(before)
    outcome = inline_functions_with_loops(loaded.model)
    after = to_caller_type(loaded)
    assert isinstance(after, onnx.ModelProto)
    onnx.checker.check_model(after, full_check=True)
    return before, after, outcome


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, np.ndarray] | None = None) -> None:
    feeds = feeds or {"z": np.array([1, -1], np.float32), "x": X}
    for left, right in zip(ort_run(before, feeds), ort_run(after, feeds), strict=True):
        np.testing.assert_array_equal(left, right)


def all_names(graph: onnx.GraphProto) -> list[str]:
    """Return the names of all values in the graph and in its nested graphs."""
    names = [i.name for i in graph.input] + [t.name for t in graph.initializer if t.name not in {i.name for i in graph.input}]
    for node in graph.node:
        names += [name for name in node.output if name]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names += all_names(attribute.g)
    return names


def ops(graph: onnx.GraphProto | Sequence[onnx.NodeProto]) -> list[str]:
    return [node.op_type for node in (graph.node if isinstance(graph, onnx.GraphProto) else graph)]


def test_a_function_with_a_scan_is_inlined_with_its_attributes() -> None:
    before, after, outcome = inlined(
        "g (float[2] z, float[t, 2] x) => (float[2] s1, float[t, 2] ys) { s1, ys = my.Cum <alpha = 2.0> (z, x) }", SCANNING
    )
    assert outcome == Inlining(["my::Cum"], [])
    assert ops(after.graph) == ["Constant", "Scan"]
    assert len(after.functions) == 0
    assert_same(before, after)


def test_two_calls_share_no_name_with_each_other_or_with_the_model() -> None:
    before, after, _ = inlined(
        """g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) {
            sn = Neg (x)
            scaled, x_t = my.Cum <alpha = 2.0> (z, sn)
            s, k = my.Cum <alpha = 5.0, beta = 0.5> (scaled, x_t)
            y = Neg (k)
        }""",
        SCANNING,
    )
    names = all_names(after.graph)
    assert len(names) == len(set(names))
    assert ops(after.graph).count("Scan") == 2
    assert_same(before, after)


def test_only_functions_that_hold_or_call_a_loop_are_inlined_at_any_depth() -> None:
    before, after, outcome = inlined(
        """g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) {
            s, a = my.Outer <gamma = 4.0> (z, x)
            y = my.Plain (a)
        }""",
        SCANNING,
        """<domain: "my", opset_import: ["": 18, "my": 1]>
        Outer <gamma> (p, q) => (s1, y) {
            yes = Constant <value = bool {1}> ()
            r = If (yes) <
                then_branch = t () => (float[?, ?] o) { o = my.Plain (q) },
                else_branch = e () => (float[?, ?] o2) { o2 = Neg (q) }
            >
            s1, y = my.Cum <alpha: float = @gamma> (p, r)
        }""",
        '<domain: "my", opset_import: ["": 18]> Plain (a) => (b) { b = Abs (a) }',
        '<domain: "my", opset_import: ["": 18, "my": 1]> Unused (z, x) => (s) { s, y = my.Idle (z, x) }',
        SCANNING.replace("Cum <alpha, beta: float = 3.0>", "Idle <alpha: float = 1.0, beta: float = 3.0>"),
    )
    assert outcome == Inlining(["my::Outer", "my::Cum"], [])
    assert sorted(f.name for f in after.functions) == ["Idle", "Plain", "Unused"]
    assert_same(before, after)


def test_calls_inside_a_loop_body_are_inlined_too() -> None:
    before, after, outcome = inlined(
        """g (float[2] z, float[u, t, 2] x) => (float[2] s, float[u, t, 2] y) {
            s, y = Scan <num_scan_inputs = 1, body = outer (float[2] s0, float[t, 2] rows) => (float[2] sn, float[t, 2] ys) {
                sn, ys = my.Cum <alpha = 2.0> (s0, rows)
            }> (z, x)
        }""",
        SCANNING,
    )
    assert outcome.inlined == ["my::Cum"]
    assert len(set(all_names(after.graph))) == len(all_names(after.graph))
    assert_same(before, after, {"z": np.zeros(2, np.float32), "x": np.stack([X, X + 1])})


def test_a_loop_in_a_nested_graph_counts() -> None:
    function = """<domain: "my", opset_import: ["": 18]>
    Deep (c, z, x) => (y) {
        y = If (c) <
            then_branch = t () => (float[?, ?] o) {
                l, o = Scan <num_scan_inputs = 1, body = b (float[?] s, float[?] x_t) => (float[?] sn, float[?] v) {
                    sn = Add (s, x_t) v = Neg (sn)
                }> (z, x)
            },
            else_branch = e () => (float[?, ?] p) { p = Abs (x) }
        >
    }"""
    before, after, outcome = inlined("g (bool c, float[2] z, float[t, 2] x) => (float[t, 2] y) { y = my.Deep (c, z, x) }", function)
    assert outcome.inlined == ["my::Deep"]
    for flag in (True, False):
        assert_same(before, after, {"c": np.array(flag), "z": np.zeros(2, np.float32), "x": X})


def test_overloads_are_told_apart() -> None:
    model = onnx.parser.parse_model(
        HEADER
        + "g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) { s, y = my.Cum <alpha = 2.0> (z, x) }"
        + SCANNING
        + '<domain: "my", opset_import: ["": 18]> Cum2 (z, x) => (s, y) { s = Neg (z) y = Neg (x) }'
    )
    model.functions[1].name, model.functions[1].overload = "Cum", "plain"
    loaded = load(model)
    assert inline_functions_with_loops(loaded.model).inlined == ["my::Cum"]
    assert [f.overload for f in to_caller_type(loaded).functions] == ["plain"]
    model.graph.node[0].overload = "plain"
    loaded = load(model)
    assert inline_functions_with_loops(loaded.model) == Inlining([], [])
    assert len(to_caller_type(loaded).functions) == 2


def test_omitted_inputs_and_attributes_stay_omitted() -> None:
    function = """<domain: "my", opset_import: ["": 18]>
    F <hi> (x, low, z) => (s, y) {
        c = Clip (x, low)
        d = Elu <alpha: float = @hi> (c)
        s, y = SUM (z, d)
    }""".replace("SUM", SUM)
    before, after, _ = inlined("g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) { s, y = my.F (x, , z) }", function)
    assert list(after.graph.node[0].input) == ["x", ""]
    assert [a.name for a in after.graph.node[1].attribute] == []
    assert_same(before, after)


@pytest.mark.parametrize("call", ["s, y, y2, x2 = my.F (z, x)", "s, y, y2 = my.F (z, x) x2 = Neg (x)"])
def test_an_input_returned_and_a_result_returned_twice_are_copied(call: str) -> None:
    function = """<domain: "my", opset_import: ["": 18]>
    F (z, x) => (s, y, y, x) {
        s, y = SUM (z, x)
    }""".replace("SUM", SUM)
    graph = "g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y, float[t, 2] y2, float[t, 2] x2) {" + call + "}"
    before = onnx.parser.parse_model(HEADER + graph + function)
    loaded = load(before)
    assert inline_functions_with_loops(loaded.model).inlined == ["my::F"]
    after = to_caller_type(loaded)
    assert isinstance(after, onnx.ModelProto)
    onnx.checker.check_model(after, full_check=True)
    produced = [name for node in after.graph.node for name in node.output]
    assert {"s", "y", "y2", "x2"} <= set(produced)
    results = ort_run(after, {"z": np.zeros(2, np.float32), "x": X})
    np.testing.assert_array_equal(results[1], -np.cumsum(X, axis=0))
    np.testing.assert_array_equal(results[2], results[1])
    np.testing.assert_array_equal(results[3], X if "x2 = my" in call or ", x2" in call else -X)


def test_symbols_of_a_function_do_not_become_those_of_the_model() -> None:
    model = onnx.parser.parse_model(
        HEADER + "g (float[n] z, float[t, n] x) => (float[n] s, float[t, n] y) { s, y = my.Cum <alpha = 2.0> (z, x) }" + SCANNING
    )
    model.functions[0].value_info.append(onnx.helper.make_tensor_value_info("ys", onnx.TensorProto.FLOAT, ["n", "t"]))
    loaded = load(model)
    inline_functions_with_loops(loaded.model)
    body = loaded.model.graph.node(1).attributes["body"].as_graph()
    shapes = [value.shape for value in (*body.inputs, *body.outputs)]
    assert shapes == [ir.Shape([None])] * 4
    assert loaded.model.graph.outputs[1].shape == ir.Shape(["t", "n"])


SQUEEZING = """
<domain: "my", opset_import: ["": 11]>
F (z, x) => (s, y) {
    s, y = Scan <num_scan_inputs = 1, body = b (float[?] p, float[?] q) => (float[?] r, float[?] w) {
        r = Add (p, q) u = Unsqueeze <axes = [0]> (r) w = Squeeze <axes = [0]> (u)
    }> (z, x)
}
"""


def test_a_function_whose_operators_mean_something_else_is_kept() -> None:
    graph = "g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) { s, y = my.F (z, x) }"
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 18, "my": 1]>' + graph + SQUEEZING)
    loaded = load(model)
    outcome = inline_functions_with_loops(loaded.model)
    assert outcome == Inlining([], [("my::F", "its Scan has the meaning of operator set 11, but the model imports 18")])
    after = to_caller_type(loaded)
    assert isinstance(after, onnx.ModelProto)
    assert ops(after.graph) == ["F"]
    assert list(map(onnx.printer.to_text, after.functions)) == list(map(onnx.printer.to_text, model.functions))


def test_a_function_of_another_operator_set_with_the_same_operators_is_inlined() -> None:
    header = '<ir_version: 8, opset_import: ["": 18, "my": 1]>'
    graph = "g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) { s, y = my.Cum <alpha = 2.0> (z, x) }"
    function = SCANNING.replace('["": 18]', '["": 16]')
    before, after, outcome = inlined(graph, function, header=header)
    assert outcome.inlined == ["my::Cum"]
    assert after.opset_import == before.opset_import
    assert_same(before, after)


def test_a_domain_only_the_function_imports_is_imported_by_the_model() -> None:
    function = SCANNING.replace('["": 18]', '["": 18, "com.microsoft": 1]').replace(
        "y = Identity (sn)", "y = com.microsoft.Gelu (sn)"
    )
    before, after, _ = inlined(
        "g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) { s, y = my.Cum <alpha = 2.0> (z, x) }", function
    )
    assert {o.domain: o.version for o in after.opset_import} == {"": 18, "my": 1, "com.microsoft": 1}
    assert_same(before, after)


def test_functions_that_call_themselves_are_kept() -> None:
    model = onnx.parser.parse_model(
        HEADER
        + "g (float[2] z, float[t, 2] x) => (float[2] s) { s = my.A (z, x) }"
        + '<domain: "my", opset_import: ["": 18, "my": 1]> A (z, x) => (s) { s = my.B (z, x) }'
        + '<domain: "my", opset_import: ["": 18, "my": 1]> B (z, x) => (s) { q, y = my.Cum <alpha = 1.0> (z, x) s = my.A (q, x) }'
        + SCANNING
    )
    outcome = inline_functions_with_loops(load(model).model)
    assert outcome == Inlining([], [("my::A", "it calls itself"), ("my::B", "it calls itself")])


def test_a_call_that_does_not_fit_is_kept_and_the_others_are_inlined() -> None:
    function = """<domain: "my", opset_import: ["": 18]>
    F (z, x, o) => (s, y, o) {
        s, y = SUM (z, x)
    }""".replace("SUM", SUM)
    model = onnx.parser.parse_model(
        HEADER
        + """g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) {
            [good] s, a = my.F (z, x)
            [bad] s2, y, b = my.F (z, a)
        }"""
        + function
    )
    loaded = load(model)
    outcome = inline_functions_with_loops(loaded.model)
    assert outcome == Inlining(["my::F"], [("my::F", "its call 'bad' leaves out an input that is also an output")])
    after = to_caller_type(loaded)
    assert isinstance(after, onnx.ModelProto)
    assert ops(after.graph) == ["Scan", "F"]
    assert [f.name for f in after.functions] == ["F"]


def test_the_caller_keeps_the_functions() -> None:
    model = onnx.parser.parse_model(
        HEADER + "g (float[2] z, float[t, 2] x) => (float[2] s, float[t, 2] y) { s, y = my.Cum <alpha = 2.0> (z, x) }" + SCANNING
    )
    mine = ir.from_proto(model)
    inline_functions_with_loops(load(mine).model)
    assert [node.op_type for node in mine.graph] == ["Cum"]
    assert ir.to_proto(mine).functions == ir.to_proto(ir.from_proto(model)).functions


@pytest.mark.parametrize("declared", ["bool c", "bool[1] c"])
@pytest.mark.parametrize("state", ["float[2] s", "float s"])
def test_a_body_in_a_function_keeps_the_shape_of_an_input_that_is_an_output(declared: str, state: str) -> None:
    """As in exported models, the Loop declares less about the output than about the input."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 16, "my": 1]> g (int64 n, bool go, {state.replace(" s", " x")}) => (float[?] y) {{
        y = my.Repeat (n, go, x) }}
        <domain: "my", opset_import: ["": 16]> Repeat (n, go, x) => (y) {{
            z, y = Loop (n, go, x) <body = b (int64 i, {declared}, {state}) => (bool[] c, float[] t, float[] s) {{ t = Neg (s) }}> }}"""
    )
    kept = to_caller_type(load(model)).functions[0].node[0].attribute[0].g.input
    assert [info.type for info in kept] == [info.type for info in model.functions[0].node[0].attribute[0].g.input]
