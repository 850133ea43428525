from collections import Counter
from dataclasses import replace

import numpy as np
import onnx
import pytest

from rewrites.graph.context import Options
from rewrites.loop_form import roll_up_trees
from tests.rewrites.apply import apply, patches
from tests.rewrites.fission.harness import data
from tests.support.prefix_trees import OPERATORS, TreeOperator, prefix_tree


def rolled(model: onnx.ModelProto, options: Options | None = None) -> Counter[str]:
    """Apply the rule once, compare on onnxruntime, and count the operators of the result."""
    after, report = apply(model, [roll_up_trees], feeds=data(model), options=options)
    assert patches(report) == ["roll-up-trees"]
    return Counter(node.op_type for node in after.graph.node)


def assert_stays(model: onnx.ModelProto, code: str = "") -> None:
    _, report = apply(model, [roll_up_trees])
    assert patches(report) == []
    assert [code for message in report.messages if f"({code})" in message] == [code][: len(code)]


@pytest.mark.parametrize("steps", [8, 9, 13, 16, 31])
@pytest.mark.parametrize("form", ["doubling", "doubling from the end", "padded doubling", "stacked", "dilated"])
def test_a_tree_of_sums_becomes_a_scan(form: str, steps: int) -> None:
    assert rolled(prefix_tree(form, "sum", steps)) == {"Scan": 1}


@pytest.mark.parametrize("form", ["doubling", "stacked"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_any_associative_operator_becomes_the_body(operator: str, form: str) -> None:
    assert rolled(prefix_tree(form, operator, 11))["Scan"] == 1


@pytest.mark.parametrize("operator", ["product", "maximum", "minimum", "integer sum", "or"])
def test_padding_with_the_neutral_element_changes_nothing(operator: str) -> None:
    assert rolled(prefix_tree("padded doubling", operator, 9)) == {"Scan": 1}


def test_other_padding_is_no_prefix() -> None:
    assert_stays(prefix_tree("padded doubling", replace(OPERATORS["sum"], neutral=[1]), 9))


@pytest.mark.parametrize("form", ["doubling", "stacked", "dilated"])
@pytest.mark.parametrize(("axis", "rank"), [(0, 1), (1, 2), (0, 3), (1, 3), (2, 3)])
def test_the_steps_may_lie_along_any_axis(form: str, axis: int, rank: int) -> None:
    assert rolled(prefix_tree(form, "linear", 10, axis=axis, rank=rank))["Scan"] == 1


@pytest.mark.parametrize(("form", "opset"), [("padded doubling", 11), ("stacked", 13), ("stacked", 25)])
def test_a_tree_of_any_opset_becomes_a_scan(form: str, opset: int) -> None:
    assert rolled(prefix_tree(form, "maximum", 9, opset=opset)) == {"Scan": 1}


def test_parts_that_are_not_returned_leave_no_state() -> None:
    model = prefix_tree("stacked", "linear", 16, results=1)
    after, _ = apply(model, [roll_up_trees], feeds=data(model))
    (scan,) = [node for node in after.graph.node if node.op_type == "Scan"]
    assert len(scan.output) == 2


def test_a_weight_may_be_repeated_at_each_level() -> None:
    weighted = TreeOperator(
        "w{n} = Constant <value = float[3] {{1, 0.5, -2}}> () m{n} = Mul ({a0}, {b0}) r{n} = Mul (m{n}, w{n})", ["r{n}"]
    )
    assert rolled(prefix_tree("doubling", weighted, 9))["Scan"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "r{n} = Sub ({a0}, {b0})",
        "s{n} = Add ({a0}, {b0}) h{n} = Constant <value = float {{0.5}}> () r{n} = Mul (s{n}, h{n})",
        "s{n} = Mul ({a0}, {b0}) r{n} = Add (s{n}, {b0})",
        "s{n} = Add ({a0}, {b0}) h{n} = Constant <value = float {{100}}> () r{n} = Min (s{n}, h{n})",
        "s{n} = Add ({a0}, {b0}) lo{n} = Constant <value = float {{-1e9}}> () r{n} = Clip (s{n}, lo{n})",
        "s{n} = Add ({a0}, {b0}) h{n} = Constant <value = float {{1e9}}> () g{n} = Greater (s{n}, h{n}) r{n} = Where (g{n}, {a0}, s{n})",
        "s{n} = Add ({a0}, {b0}) r{n} = Elu <alpha = 1e9> (s{n})",
        "r{n} = Add ({b0}, {b0})",
    ],
)
def test_an_operator_that_is_not_associative_stays(text: str) -> None:
    assert_stays(prefix_tree("doubling", TreeOperator(text, ["r{n}"]), 9), "" if text.endswith("({b0}, {b0})") else "TREE-OPERATOR")


@pytest.mark.parametrize(
    ("form", "spoil"),
    [
        ("doubling", "i0, im2, i0, i1>i1, im1, i0, i1"),
        ("doubling", "i2, i9223372036854775807, i0, i1>i1, im1, i0, i1"),
        ("doubling", "i0, i2, i0, i1>i2, i4, i0, i1"),
        ("stacked", "i1, i9223372036854775807, i0, i2>i0, im1, i0, i2"),
        ("stacked", "i2, i9223372036854775807, i0, i2>i1, im1, i0, i2"),
        ("stacked", "i0, i1, i0, i1>i1, i2, i0, i1"),
        ("dilated", "i1, i9223372036854775807, i0, i2>i0, im1, i0, i2"),
    ],
)
def test_a_wrong_slice_is_found(form: str, spoil: str) -> None:
    assert_stays(prefix_tree(form, "sum", 9, spoil=spoil))


def test_exchanged_operands_are_found() -> None:
    exchanged = prefix_tree("doubling", "maximum", 16, spoil="Max (t6, t7)>Max (t7, t6)")
    assert_stays(exchanged)


def test_a_tree_with_a_part_that_is_read_elsewhere_stays() -> None:
    model = prefix_tree("doubling", "sum", 16)
    inner = next(node for node in model.graph.node if node.op_type == "Add")
    model.graph.node.append(onnx.helper.make_node("Exp", [inner.output[0]], ["z"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [15, 3]))
    assert_stays(model, "TREE-READ")


def test_padding_of_pairs_is_only_neutral_for_finite_numbers() -> None:
    model = prefix_tree("padded doubling", replace(OPERATORS["linear"], neutral=[1, 0]), 9)
    assert_stays(model)
    assert rolled(model, Options(fast_math=True))["Scan"] == 1


def test_few_steps_stay() -> None:
    assert_stays(prefix_tree("doubling", "sum", 7))


def test_an_infinite_first_factor_does_not_reach_later_steps() -> None:
    model = prefix_tree("stacked", "linear", 9, results=1)
    feeds = data(model)
    feeds["x0"][0] = np.inf
    _, report = apply(model, [roll_up_trees], feeds=feeds)
    assert patches(report) == ["roll-up-trees"]
