"""A recurrent node becomes a call of a function that holds it; without a library onnxruntime runs the node in there."""

import numpy as np
import pytest

from rewrites.graph.context import Options
from rewrites.native import native_cell
from rewrites.rule import Rule
from tests.rewrites.apply import apply, read
from tests.rewrites.native.test_native_loop import calls, without_plans
from tests.support.text import assert_text_equal

WEIGHTS = "float[1,6,3] W = {0.5, -1, 0.25, 1, 0, 2, -0.5, 0.125, 1, 0, 1, -1, 0.5, 0, 0.25, 1, 1, -2}, " + (
    "float[1,6,2] R = {0.5, -1, 0.25, 1, 0, 2, -0.5, 0.125, 1, 0, 1, -1}"
)
FEEDS = {"x": np.float32(np.linspace(-1, 1, 12)).reshape(2, 2, 3)}


def node(attributes: str = "", more: str = "", inputs: str = "", weights: str = WEIGHTS) -> str:
    comma = f", {attributes}" if attributes else ""
    return f"""g (float[T,B,3] x{more}) => (float[T,1,B,2] ys, float[1,B,2] hT) <{weights}> {{
        ys, hT = GRU <hidden_size = 2{comma}> (x, W, R{inputs})
    }}"""


def codes(text: str, options: Options | None = None) -> list[str]:
    after, report = apply(text, [native_cell], options=options)
    assert not calls(after)
    return [reason.code for cell in report.cells for reason in cell.reasons]


def test_a_node_becomes_a_call_and_stands_in_the_function() -> None:
    after, report = apply(node("linear_before_reset = 1"), [native_cell], feeds=FEEDS)
    expected = f"""<ir_version: 10, opset_import: ["": 18, "ai.ortscan": 1]>
        g (float[T,B,3] x) => (float[T,1,B,2] ys, float[1,B,2] hT) <{WEIGHTS}> {{
            ys, hT = ai.ortscan.Cell1:l0 <plan = "..."> (x, W, R)
        }}
        <domain: "ai.ortscan", overload: "l0", opset_import: ["": 18]>
        Cell1 <plan> (x_1, W_1, R_1) => (ys_1, hT_1) {{
            ys_1, hT_1 = GRU <hidden_size = 2, linear_before_reset = 1> (x_1, W_1, R_1)
        }}"""
    assert_text_equal(without_plans(after), expected)
    (cell,) = report.cells
    assert [fired.rule for fired in cell.fired] == ["native-cell"]


def test_a_call_has_only_the_inputs_and_outputs_that_are_there() -> None:
    text = node(more=", int32[B] lens, float[1,B,2] h", inputs=", , lens, h").replace("ys, hT = GRU", ", hT = GRU")
    text = text.replace("float[T,1,B,2] ys, ", "")
    feeds = {"lens": np.int32([2, 1]), "h": np.float32([[[1, 2], [3, 4]]])}
    after, _ = apply(text, [native_cell], feeds=FEEDS | feeds)
    (call,) = calls(after)
    assert list(call.input) == ["x", "W", "R", "lens", "h"]
    assert list(call.output) == ["hT"]
    assert list(after.functions[0].node[0].input) == [*(f"{name}_1" for name in "xWR"), "", "lens_1", "h_1"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (node('activations = ["Sigmoid", "Softplus"]'), "NATIVE-CELL"),
        (
            node("layout = 1").replace("float[T,1,B,2]", "float[T,B,1,2]").replace("float[1,B,2] hT", "float[T,1,2] hT"),
            "NATIVE-CELL",
        ),
        (node().replace("float[", "double["), "NATIVE-CELL"),
        (node(more=", int64[B] lens", inputs=", , lens"), "NATIVE-CELL"),
        (node(more=", float[1,6,2] R", weights=WEIGHTS.partition(", float[1,6,2]")[0]), "NATIVE-WEIGHTS"),
    ],
)
def test_other_nodes_stay_with_a_reason(text: str, code: str) -> None:
    after, report = apply(read(text, check=False), [native_cell], check=False)
    assert not calls(after)
    assert [reason.code for cell in report.cells for reason in cell.reasons] == [code]


def test_weights_that_a_caller_may_override_are_not_constant() -> None:
    text = node(more=", float[1,6,2] R")
    _, report = apply(read(text, check=False), [native_cell], check=False)
    assert [reason.code for cell in report.cells for reason in cell.reasons] == ["NATIVE-WEIGHTS"]


def test_targets_without_the_library_keep_the_node() -> None:
    assert codes(node(), Options(domains=frozenset())) == []


def test_the_rule_is_asked_for() -> None:
    rule: Rule[object] = native_cell.RULE  # type: ignore[assignment]
    assert rule.use == "asked"


def test_a_node_in_a_branch_reads_weights_of_the_graph_around() -> None:
    text = f"""g (bool c, float[T,B,3] x, float[1,B,2] h) => (float[1,B,2] y) <{WEIGHTS}> {{
        y = If (c) <
            then_branch = t () => (float[1,B,2] a) {{ , a = GRU <hidden_size = 2> (x, W, R) }},
            else_branch = e () => (float[1,B,2] b) {{ b = Identity (h) }}
        >
    }}"""
    after, _ = apply(text, [native_cell], feeds=FEEDS | {"c": np.array(True), "h": np.zeros((1, 2, 2), np.float32)})
    (call,) = calls(after)
    assert list(call.input) == ["x", "W", "R"]
