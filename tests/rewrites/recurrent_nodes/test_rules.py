"""Rules on recurrent nodes, ONNX text in and out, and what they leave alone."""

import io
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from rich.console import Console

import ortscan
from ortscan.api import rewritten
from ortscan.errors import OrtscanWarning
from ortscan.modelio import to_caller_type
from ortscan.report.text import explanation
from ortscan.report.words import dump, report_dict
from rewrites.ops.rnn.functions import PARAMETERS
from rewrites.recurrent_nodes import (
    activation_defaults,
    batch_first,
    bfloat16_recurrence,
    double_recurrence,
    recurrent_attributes,
    sequence_lengths,
    stable_softplus,
)
from rewrites.registry import DEFAULT_NODE_RULES, NODE_RULES
from rewrites.repair import guard_scan
from tests.rewrites.apply import apply, patches
from tests.rewrites.recurrent_nodes.nodes import INPUTS, OneNode
from tests.rewrites.recurrent_nodes.test_refused_nodes import agrees, optimised, runs, variant
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal

WEIGHTS = "<float[1, 2, 3] W = {1, 2, 3, 4, 5, 6}, float[1, 2, 2] R = {1, 2, 3, 4}"


def text_of(attributes: str, *, inputs: str = "x, W, R", more: str = "", x: str = "T, B, 3", y: str = "T, 1, B, 2") -> str:
    node = f"y = RNN <{attributes}> ({inputs})"
    return f"g (float[{x}] x{more}) => (float[{y}] y)\n{WEIGHTS}>\n{{ {node} }}"


def changed_by(text: str, rules: list, **options) -> tuple[onnx.ModelProto, list[str], list[str]]:
    """The result, the rules that fired, and the codes of reasons."""
    result, report = apply(text, rules, check=False, **options)
    return result, patches(report), [reason.code for node in report.nodes for reason in node.reasons]


@pytest.mark.parametrize(
    ("before", "after", "proven"),
    [
        ('direction = "forward"', 'direction = "forward", hidden_size = 2', "T, 1, B, ?"),
        ("hidden_size = 2, output_sequence = 1", "hidden_size = 2", "T, 1, B, 2"),
        ('hidden_size = 2, activations = ["tanh"]', 'hidden_size = 2, activations = ["Tanh"]', "T, 1, B, 2"),
    ],
)
def test_attributes_are_written_as_onnxruntime_wants_them(before, after, proven):
    result, fired, _ = changed_by(text_of(before), [recurrent_attributes])
    assert_text_equal(result, text_of(after, y=proven))
    assert fired == ["recurrent-attributes"]


@pytest.mark.parametrize(
    "attributes", ["hidden_size = 2, clip = 0.0", "hidden_size = 2, clip = -1.0", "hidden_size = 2, clip = 3.0"]
)
def test_an_rnn_keeps_its_clip_since_it_runs(attributes):
    result, fired, _ = changed_by(text_of(attributes), [recurrent_attributes])
    assert_text_equal(result, text_of(attributes))
    assert not fired


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('["Affine"]', '["Affine"], activation_alpha = [1.0], activation_beta = [0.0]'),
        ('["ScaledTanh"], activation_alpha = [2.0]', '["ScaledTanh"], activation_alpha = [2.0], activation_beta = [1.0]'),
        ('["ThresholdedRelu"]', '["ThresholdedRelu"], activation_alpha = [1.0]'),
    ],
)
def test_parameters_that_onnxruntime_takes_as_0_are_written_out(before, after):
    head = "hidden_size = 2, activations = "
    result, fired, _ = changed_by(text_of(head + before), [activation_defaults])
    assert_text_equal(result, text_of(head + after))
    assert fired == ["activation-defaults"]


@pytest.mark.parametrize(
    "attributes", ['["LeakyRelu"]', '["HardSigmoid"]', '["Elu"]', '["ThresholdedRelu"], activation_alpha = [2.0]']
)
def test_parameters_that_onnxruntime_reads_as_the_text_says_stay_unsaid(attributes):
    _, fired, _ = changed_by(text_of(f"hidden_size = 2, activations = {attributes}"), [activation_defaults])
    assert not fired


def test_lists_stay_compact_where_defaults_are_written_out():
    node = OneNode("LSTM", {"activations": ["HardSigmoid", "Softsign", "Affine"]})
    result, _ = apply(node.model(), [activation_defaults])
    (lstm,) = result.graph.node
    given = {one.name: onnx.helper.get_attribute_value(one) for one in lstm.attribute}
    np.testing.assert_allclose(given["activation_alpha"], [0.2, 1.0], rtol=1e-6)
    np.testing.assert_allclose(given["activation_beta"], [0.5, 0.0])


def test_lengths_become_int32_of_one_axis():
    result, fired, _ = changed_by(text_of("hidden_size = 2", inputs="x, W, R, , n", more=", int64[1, B] n"), [sequence_lengths])
    assert fired == ["sequence-lengths"]
    expected = text_of("hidden_size = 2", inputs="x, W, R, , n32", more=", int64[1, B] n")
    nodes = "{ all = Constant <value = int64[1] {-1}> () flat = Reshape (n, all) n32 = Cast <to = 6> (flat) "
    expected = expected.replace("4}>", "4}, int64[1] all = {-1}>").replace(
        "{ y", nodes.replace("all = Constant <value = int64[1] {-1}> () ", "") + "y"
    )
    assert_text_equal(result, expected)


def test_lengths_as_the_text_has_them_stay():
    _, fired, _ = changed_by(text_of("hidden_size = 2", inputs="x, W, R, , n", more=", int32[B] n"), [sequence_lengths])
    assert not fired


def test_the_batch_axis_moves_behind_the_steps():
    result, fired, _ = changed_by(text_of("hidden_size = 2, layout = 1", x="B, T, 3", y="B, T, 1, 2"), [batch_first])
    expected = text_of("hidden_size = 2", inputs="xt, W, R", x="B, T, 3", y="B, T, 1, 2")
    expected = expected.replace("{ y = ", "{ xt = Transpose <perm = [1, 0, 2]> (x) yt = ")
    assert_text_equal(result, expected.replace("R) }", "R) y = Transpose <perm = [2, 0, 1, 3]> (yt) }"))
    assert fired == ["batch-first"]


def test_bfloat16_computes_in_float32():
    text = text_of("hidden_size = 2").replace("float[T", "bfloat16[T").replace(WEIGHTS + ">", "")
    text = text.replace(" x) =>", " x, bfloat16[1, 2, 3] W, bfloat16[1, 2, 2] R) =>")
    result, fired, _ = changed_by(text, [bfloat16_recurrence], opset=22)
    casts = "{ xf = Cast <to = 1> (x) wf = Cast <to = 1> (W) rf = Cast <to = 1> (R) z = RNN <hidden_size = 2> (xf, wf, rf) "
    assert_text_equal(result, text[: text.index("{")] + casts + "y = Cast <to = 16> (z) }")
    assert fired == ["bfloat16-recurrence"]


@pytest.mark.parametrize(
    "rule",
    [
        recurrent_attributes,
        activation_defaults,
        sequence_lengths,
        bfloat16_recurrence,
        batch_first,
        double_recurrence,
        stable_softplus,
    ],
)
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_what_runs_as_the_text_has_it_is_left_alone(rule, kind):
    everything = frozenset({"B", "lengths", "initial_h"})
    node = OneNode(kind, {"direction": "bidirectional", "clip": 2.0}, everything)
    _, report = apply(node.model(), [rule])
    assert not report.patches
    assert not report.nodes


REFUSALS = {"RNN-ACTIVATION": 'hidden_size = 2, activations = ["Gelu"]', "RNN-ATTRIBUTE": 'hidden_size = 2, direction = "sideways"'}


@pytest.mark.parametrize("code", REFUSALS)
def test_what_the_text_gives_no_meaning_is_refused(code):
    _, fired, codes = changed_by(text_of(REFUSALS[code]), [recurrent_attributes])
    assert codes == [code]
    assert not fired


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("LSTM", {"direction": "bidirectional", "activations": ["Sigmoid", "Tanh", "Tanh"]}),
        ("GRU", {"activations": ["Sigmoid", "Tanh", "Sigmoid", "Tanh"]}),
        ("RNN", {"direction": "bidirectional", "activations": ["Relu"]}),
    ],
)
def test_a_wrong_number_of_activations_is_refused(kind, attributes):
    node = OneNode(kind, attributes)
    assert not runs(node.model(), node.feeds(3, 2))
    report = ortscan.explain(node.model())
    assert [reason.code for entry in report.nodes for reason in entry.reasons] == ["RNN-ACTIVATION"]
    assert "activations are named, but" in report.nodes[0].reasons[0].detail
    assert not report.changed


def test_a_node_whose_size_nothing_tells_is_refused():
    text = "g (float[T, B, 3] x, float[1, M, 3] W, float[1, M, N] R) => (float[T, 1, B, K] y) { y = RNN (x, W, R) }"
    _, _, codes = changed_by(text, [recurrent_attributes])
    assert codes == ["RNN-HIDDEN-SIZE"]


@pytest.mark.parametrize("size", ["", "hidden_size = 0, ", "hidden_size = -1, "])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_node_of_no_size_stays_as_it_was_with_the_reason(kind, size):
    """onnxruntime refuses it; batch-first, it would be written out for ever."""
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[B, T, 3] x, float[1, 0, 3] W, float[1, 0, 0] R) => (y) {{ y = {kind} <{size}layout = 1> (x, W, R) }}""")
    report = ortscan.explain(model)
    found = [reason for entry in report.nodes for reason in entry.reasons]
    assert [reason.code for reason in found] == ["RNN-HIDDEN-SIZE"]
    assert "but must be 1 or more" in found[0].detail
    assert not report.changed


def test_lengths_that_are_no_whole_numbers_are_refused():
    _, _, codes = changed_by(text_of("hidden_size = 2", inputs="x, W, R, , n", more=", float[B] n"), [sequence_lengths])
    assert codes == ["RNN-INPUT"]


def test_a_scan_needs_an_opset_that_has_it():
    node = OneNode("GRU", element=TensorProto.DOUBLE, opset=8)
    report = ortscan.explain(node.model(), opset="keep")
    assert [reason.code for entry in report.nodes for reason in entry.reasons] == ["RNN-OPSET"]
    assert ortscan.explain(node.model()).patches


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE])
@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_activation_computes_what_the_text_says(name, element):
    for kind, names in (("RNN", [name]), ("LSTM", ["HardSigmoid", name, name])):
        node = OneNode(kind, {"layout": 1, "activations": names}, frozenset({"B"}), element)
        agrees(node, optimised(node), 3, 2)
        given = {"activation_alpha": [0.25, 0.5, 0.75], "activation_beta": [0.5, 0.25, 0.125]}
        node = OneNode(kind, {"layout": 1, "activations": names, **given}, frozenset({"B"}), element)
        agrees(node, optimised(node), 3, 2)


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize(("kind", "names"), [("RNN", ["Softplus"]), ("GRU", ["Sigmoid", "Softplus"])])
def test_softplus_stays_finite_in_a_node_that_is_lowered(kind, names, element):
    node = OneNode(kind, {"layout": 1, "activations": names}, frozenset({"B", "lengths"}), element)
    result = optimised(node)
    feeds = node.feeds(2, 3)
    feeds["x"] = feeds["x"] * np.array(100, feeds["x"].dtype)
    expected = node.expected(feeds)
    assert np.abs(expected[0].astype(np.float64)).max() > 90
    assert_same_numbers(ort_run(result, feeds), expected, 1e-5 if element == TensorProto.FLOAT else 1e-2, 1e-5)


def test_a_node_with_softplus_that_runs_stays():
    _, report = apply(OneNode("GRU", {"activations": ["Sigmoid", "Softplus"]}).model(), DEFAULT_NODE_RULES)
    assert not report.patches


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_rows_without_steps_keep_their_state_where_only_defaults_were_missing(kind):
    names = {"RNN": ["Affine"], "GRU": ["Sigmoid", "ScaledTanh"], "LSTM": ["Sigmoid", "ThresholdedRelu", "Tanh"]}[kind]
    node = OneNode(kind, {"activations": names}, frozenset({"lengths", "initial_h", "initial_c"} & {*INPUTS[kind]}))
    result = optimised(node)
    agrees(node, result, 2, 3, [0, 2, 1])
    agrees(node, result, 0, 2, [0, 0])


@pytest.mark.parametrize("attribute", ["input_forget", "linear_before_reset"])
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_gates_that_are_coupled_otherwise_stay_so(attribute, element):
    kind = "LSTM" if attribute == "input_forget" else "GRU"
    for name in ("layout 1", "layout 1 with all inputs"):
        wanted = variant(kind, name, "bidirectional", **{attribute: 1})
        node = OneNode(kind, wanted.attributes, wanted.extra, element)
        agrees(node, optimised(node), 4, 3)


@pytest.mark.parametrize("wanted", ["y", "y_h", "y_c"])
@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_results_that_are_not_wanted_stay_away(wanted, element):
    outputs = tuple(name if name == wanted else "" for name in ("y", "y_h", "y_c"))
    node = OneNode("LSTM", {"layout": 1}, frozenset({"initial_h", "initial_c"}), element, outputs=outputs)
    agrees(node, optimised(node), 3, 2)


@pytest.mark.parametrize("element", [TensorProto.FLOAT, TensorProto.DOUBLE])
def test_a_length_that_is_none_is_refused_at_run_time(element):
    node = OneNode("GRU", {}, frozenset({"lengths"}), element, lengths_type=TensorProto.INT64)
    result = optimised(node)
    agrees(node, result, 3, 2, [3, 0])
    for bad in ([4, 1], [-1, 1]):
        assert not runs(result, node.feeds(3, 2, bad))


def test_weights_may_be_computed():
    node = OneNode("LSTM", {"layout": 1}, frozenset({"B"}), TensorProto.DOUBLE)
    model = node.model()
    weights = list(model.graph.initializer)
    del model.graph.initializer[:]
    model.graph.input.extend(onnx.helper.make_tensor_value_info(one.name, one.data_type, one.dims) for one in weights)
    result = to_caller_type(rewritten(model, debug=True)[0])
    feeds = {**node.feeds(3, 2), **{one.name: onnx.numpy_helper.to_array(one) for one in weights}}
    assert_same_numbers(ort_run(result, feeds), node.expected(node.feeds(3, 2)), 1e-12, 1e-12)


INSIDE = """
<ir_version: 10, opset_import: ["": 18]>
g (bool c, double[2, 3, 4] x) => (double[2, 3, 1, 2] y)
<double[1, 6, 4] W, double[1, 6, 2] R> {
  y = If (c) <then_branch = a () => (double[2, 3, 1, 2] p) { p = GRU <layout = 1, hidden_size = 2> (x, W, R) },
              else_branch = b () => (double[2, 3, 1, 2] q) { q = GRU <layout = 1, direction = "reverse"> (x, W, R) }>
}
"""
IN_A_LOOP = """
<ir_version: 10, opset_import: ["": 18]>
g (float[N, 2, 3, 4] xs) => (float[N, 2, 3, 1, 2] ys)
<float[1, 6, 4] W, float[1, 6, 2] R> {
  ys = Scan <num_scan_inputs = 1, body = b (float[2, 3, 4] x) => (float[2, 3, 1, 2] y) {
      y = GRU <layout = 1, hidden_size = 2> (x, W, R) }> (xs)
}
"""
IN_A_FUNCTION = """
<ir_version: 10, opset_import: ["": 18, "my": 1]>
g (double[2, 3, 4] x) => (double[2, 3, 1, 2] y)
<double[1, 6, 4] W, double[1, 6, 2] R> { y = my.cell <way = "reverse"> (x, W, R) }
<domain: "my", opset_import: ["": 18]>
cell <way> (x, W, R) => (y) { y = GRU <layout = 1, hidden_size = 2, direction : string = @way> (x, W, R) }
"""


def filled(text: str) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The model of `text` with weights, and those."""
    rng = np.random.default_rng(5)
    kind = np.float64 if "double" in text else np.float32
    weights = {"W": rng.standard_normal((1, 6, 4)).astype(kind), "R": rng.standard_normal((1, 6, 2)).astype(kind)}
    text = text.replace("<double[1, 6, 4] W, double[1, 6, 2] R>", "").replace("<float[1, 6, 4] W, float[1, 6, 2] R>", "")
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model, weights


def expected(weights, x, direction="forward") -> np.ndarray:
    from tests.support.recurrent_oracle import recurrent

    return recurrent("GRU", x, weights["W"], weights["R"], direction=direction, layout=1)[0]


def test_nodes_in_branches_are_found():
    model, weights = filled(INSIDE)
    loaded, report = rewritten(model, debug=True)
    assert [entry.where.split("/")[1] for entry in report.nodes] == ["If producing 'y'"] * 2
    x = np.random.default_rng(1).standard_normal((2, 3, 4))
    for flag in (True, False):
        (y,) = ort_run(to_caller_type(loaded), {"c": np.array(flag), "x": x})
        np.testing.assert_allclose(y, expected(weights, x, "forward" if flag else "reverse"), rtol=1e-12)


def test_a_node_in_a_loop_is_lowered_before_the_loop_is_taken_apart():
    model, weights = filled(IN_A_LOOP)
    loaded, report = rewritten(model, debug=True)
    assert not report.loops_left
    xs = np.random.default_rng(1).standard_normal((3, 2, 3, 4)).astype(np.float32)
    (ys,) = ort_run(to_caller_type(loaded), {"xs": xs})
    np.testing.assert_allclose(ys, np.stack([expected(weights, x) for x in xs]), rtol=1e-4, atol=1e-6)


def test_a_node_in_a_function_is_found():
    model, weights = filled(IN_A_FUNCTION)
    loaded, report = rewritten(model, debug=True)
    assert report.messages == ["inlined the function my::cell, which holds a recurrent node"]
    x = np.random.default_rng(1).standard_normal((2, 3, 4))
    (y,) = ort_run(to_caller_type(loaded), {"x": x})
    np.testing.assert_allclose(y, expected(weights, x, "reverse"), rtol=1e-12)


def test_a_function_whose_node_runs_is_not_inlined():
    model, _ = filled(IN_A_FUNCTION.replace("double", "float").replace("layout = 1, ", ""))
    loaded, report = rewritten(model)
    assert not report.changed
    assert len(to_caller_type(loaded).functions) == 1


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_lowered_double_stays_a_scan(kind):
    node = OneNode(kind, element=TensorProto.DOUBLE, steps=4, rows=1)
    result = to_caller_type(rewritten(node.model(), target="onnx", debug=True)[0])
    assert "Scan" in {one.op_type for one in result.graph.node}
    assert kind not in {one.op_type for one in result.graph.node}
    assert not ortscan.explain(result).nodes


def test_quantised_nodes_are_left_alone():
    model = OneNode("LSTM").model()
    model.graph.node[0].domain = "com.microsoft"
    model.graph.node[0].op_type = "DynamicQuantizeLSTM"
    model.opset_import.add(domain="com.microsoft", version=1)
    assert not ortscan.explain(model).nodes


def test_a_rule_can_be_left_out():
    node = OneNode("LSTM", {"layout": 1})
    report = ortscan.explain(node.model(), skip=["batch-first"])
    assert not report.changed


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "name"), [("LSTM", "layout 1 with all inputs"), ("GRU", "double with all inputs"), ("RNN", "opset 1")]
)
def test_verification_compares_with_the_equations(kind, name):
    node = variant(kind, name)
    result = ortscan.optimize(node.model(), verify=True, skip=["weights-into-branches"])
    outcome = ortscan.verify(node.model(), result)
    assert outcome.ok
    assert any("a Scan of its equations ran" in note for note in outcome.notes)
    for one in result.graph.initializer:
        if one.name == "R":
            one.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(one) * 2, "R"))
    assert not ortscan.verify(node.model(), result).ok


def test_verification_repairs_an_original_that_onnxruntime_computes_wrongly():
    node = OneNode("RNN", {"activations": ["Affine"]})
    result = ortscan.optimize(node.model(), verify=True)
    feeds = node.feeds(3, 2)
    assert not np.any(ort_run(node.model(), feeds)[0])
    agrees(node, result, 3, 2)


@pytest.mark.parametrize("target", ["onnx", "cuda", "openvino", "directml"])
def test_other_targets_are_guarded_too_since_a_node_may_fall_back_to_the_cpu(target):
    node = OneNode("LSTM", {"layout": 1})
    result = to_caller_type(rewritten(node.model(), target=target)[0])
    assert [one.op_type for one in result.graph.node if one.op_type in ("If", "LSTM")] == ["If"]
    for rows in (0, 2):
        agrees(node, result, 3, rows)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [({"layout": 1}, "batch-first"), ({"activations": ["Gelu", "Tanh", "Tanh"]}, "'Gelu' is not an activation of the operator")],
)
def test_reports_say_what_became_of_a_node(attributes, said):
    report = ortscan.explain(OneNode("LSTM", attributes).model())
    console = Console(width=120, file=io.StringIO())
    console.print(explanation(report, report.answer))
    for shown in (
        console.file.getvalue(),
        report.to_html().replace("&#x27;", "'").replace("&#39;", "'"),
        dump(report_dict(report)),
    ):
        assert "main/LSTM 'cell'" in shown
        assert said in shown


def test_a_node_without_meaning_is_named_in_one_sentence():
    node = OneNode("LSTM", {"activations": ["Gelu", "Tanh", "Tanh"]})
    with pytest.warns(
        OrtscanWarning, match=r"does not run main/LSTM 'cell', and .*: 'Gelu' is not an activation of the operator\.$"
    ):
        ortscan.optimize(node.model())


def test_the_document_on_rewrites_names_every_rule():
    text = (Path(__file__).parents[3] / "ortscan" / "docs" / "explanation" / "how-a-loop-leaves.md").read_text(encoding="utf-8")
    assert [rule.name for rule in (*NODE_RULES, guard_scan.RULE) if f"`{rule.name}`" not in text] == []


def test_what_both_models_leave_to_onnxruntime_is_compared_as_it_has_it():
    node = OneNode("RNN", {"activations": ["ThresholdedRelu"]}, opset=14)
    outcome = ortscan.verify(node.model(), ortscan.migrate(node.model(), 22))
    assert outcome.ok
    assert not any("equations" in note for note in outcome.notes)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_verification_tries_sizes_of_zero_on_guarded_nodes(kind):
    node = OneNode(kind, {"layout": 1}, frozenset({"initial_h"}))
    result = ortscan.optimize(node.model())
    outcome = ortscan.verify(node.model(), result)
    assert outcome.ok
    assert "T in 0, 1" in outcome.summary()
    assert "B in 0, 1" in outcome.summary()
    for branch in (attribute.g for one in result.graph.node for attribute in one.attribute if attribute.name == "else_branch"):
        for one in branch.node:
            if one.op_type == "Identity":
                one.op_type = "Neg"
    assert not ortscan.verify(node.model(), result).ok
