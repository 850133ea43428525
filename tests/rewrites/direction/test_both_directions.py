"""Two nodes of opposite directions become one, in numbers the same; what is not alike stays two."""

from typing import Any

import numpy as np
import onnx
import pytest

import ortscan
from rewrites.base.report import RewriteReport
from rewrites.direction import both_directions, reversed_nodes
from rewrites.graph.context import Options
from tests.rewrites.apply import apply, patches
from tests.rewrites.direction.two_directions import SIZE, STEPS, TwoNodes
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run

SQUEEZED = "f = Squeeze (f_Y, one) b = Squeeze (b_Y, one) "
SIDE_BY_SIDE = SQUEEZED + "y = Concat <axis = -1> (f, b)"
RESULTS = {"y": [STEPS, 2, 2 * SIZE]}
NOTHING, BIAS = frozenset[str](), frozenset({"B"})
ALL = {
    "RNN": frozenset({"B", "lens", "initial_h"}),
    "GRU": frozenset({"B", "lens", "initial_h"}),
    "LSTM": frozenset({"B", "lens", "initial_h", "initial_c", "P"}),
}


def ops(model: onnx.ModelProto) -> list[str]:
    def within(graph: onnx.GraphProto) -> list[str]:
        found = []
        for node in graph.node:
            ways = [a.s.decode() for a in node.attribute if a.name == "direction"]
            found.append("-".join([node.op_type, *ways]))
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    found.extend(within(attribute.g))
        return found

    return within(model.graph)


def joined(nodes: TwoNodes, *, bidirectional: Any = "always", steps: int = STEPS, rows: int = 2) -> tuple[list[str], RewriteReport]:
    """The operators that the rule makes of two nodes, compared on onnxruntime."""
    feeds = nodes.feeds(steps=steps, rows=rows)
    after, report = apply(nodes.model(), [both_directions], feeds=feeds, options=Options(bidirectional=bidirectional))
    assert patches(report) == ["both-directions"], report.pairs
    return ops(after), report


def left(nodes: TwoNodes, *, bidirectional: Any = "always", code: str | None = None) -> None:
    after, report = apply(nodes.model(), [both_directions], options=Options(bidirectional=bidirectional))
    assert patches(report) == []
    assert [reason.code for pair in report.pairs for reason in pair.reasons] == ([] if code is None else [code])
    assert not any("bidirectional" in op for op in ops(after))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("extra", [NOTHING, BIAS, "all"])
def test_results_side_by_side_are_those_of_one_node(kind, extra):
    extra = ALL[kind] if extra == "all" else extra
    found, _ = joined(TwoNodes(kind, SIDE_BY_SIDE, RESULTS, extra=(extra, extra)))
    weights = [op for op in found if op != "Concat"]
    assert weights == [f"{kind}-bidirectional", "Transpose", "Reshape"]
    assert ("Concat" in found) == bool(extra & {"initial_h"})


@pytest.mark.parametrize("opset", [8, 11, 13, 22])
def test_old_and_new_opsets(opset):
    text = SIDE_BY_SIDE
    if opset < 13:
        text = "f = Squeeze <axes = [1]> (f_Y) b = Squeeze <axes = [1]> (b_Y) y = Concat <axis = 2> (f, b)"
    found, _ = joined(TwoNodes("GRU", text, RESULTS, opset=opset))
    assert found == ["GRU-bidirectional", "Transpose", "Reshape"]


@pytest.mark.parametrize("kind", ALL)
def test_free_sizes(kind):
    nodes = TwoNodes(kind, SIDE_BY_SIDE, {"y": ["T", "N", 2 * SIZE]}, rows="N", steps="T")
    for steps, rows in ((1, 1), (7, 3)):
        found, _ = joined(nodes, steps=steps, rows=rows)
        assert found == [f"{kind}-bidirectional", "Transpose", "Reshape"]


@pytest.mark.parametrize("one", [0, 1])
@pytest.mark.parametrize("missing", ["B", "initial_h", "initial_c"])
@pytest.mark.parametrize("rows", [2, "N"])
def test_a_bias_or_initial_state_that_one_does_not_have_is_zero(one, missing, rows):
    full = frozenset({"B", "initial_h", "initial_c"})
    extra = (full - {missing}, full) if one == 0 else (full, full - {missing})
    joined(TwoNodes("LSTM", SIDE_BY_SIDE, {"y": [STEPS, rows, 2 * SIZE]}, extra=extra, rows=rows))


def test_initial_states_of_zeros_are_left_out():
    before = "z = ConstantOfShape (shape) f_initial_h = Unsqueeze (z, zero) b_initial_h = Identity (f_initial_h)"
    before = f"shape = Constant <value_ints = [2, {SIZE}]> () {before}"
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, before, extra=(frozenset({"initial_h"}), frozenset({"initial_h"})))
    model = nodes.model()
    del model.graph.input[1:]
    after, _ = apply(model, [both_directions], feeds={"xs": nodes.feeds()["xs"]})
    assert ops(after) == ["GRU-bidirectional", "Transpose", "Reshape"]


MEETINGS = {
    "states one below the other": ("y = Concat <axis = 0> (f_H, b_H)", [2, 2, SIZE], []),
    "sequences along the axis of directions": ("y = Concat <axis = 1> (f_Y, b_Y)", [STEPS, 2, 2, SIZE], []),
    "states side by side": (
        "f = Squeeze (f_C, zero) b = Squeeze (b_C, zero) y = Concat <axis = 1> (f, b)",
        [2, 2 * SIZE],
        ["Transpose", "Reshape"],
    ),
    "batch first": (
        SQUEEZED + "ft = Transpose <perm = [1, 0, 2]> (f) bt = Transpose <perm = [1, 0, 2]> (b) y = Concat <axis = 2> (ft, bt)",
        [2, STEPS, 2 * SIZE],
        ["Transpose", "Reshape"],
    ),
    "features in the middle": (
        SQUEEZED + "ft = Transpose <perm = [1, 2, 0]> (f) bt = Transpose <perm = [1, 2, 0]> (b) y = Concat <axis = 1> (ft, bt)",
        [2, 2 * SIZE, STEPS],
        ["Transpose", "Reshape", "Transpose"],
    ),
    "features first, in two steps": (
        """ft = Transpose <perm = [3, 1, 2, 0]> (f_Y) bt = Transpose <perm = [3, 1, 2, 0]> (b_Y)
        f = Squeeze (ft, one) b = Squeeze (bt, one) y = Concat <axis = -3> (f, b)""",
        [2 * SIZE, 2, STEPS],
        ["Transpose", "Reshape", "Transpose"],
    ),
    "beside another tensor": (
        "w = Add (b_H, b_H) y = Concat <axis = 0> (w, f_H, b_H, w)",
        [4, 2, SIZE],
        ["Split", "Add", "Concat"],
    ),
    "twice in one": (
        SQUEEZED + "y = Concat <axis = -1> (f, b, f, f, b)",
        [STEPS, 2, 5 * SIZE],
        ["Transpose", "Reshape", "Transpose", "Reshape", "Split", "Squeeze", "Concat"],
    ),
    "the other way round": (
        SQUEEZED + "y = Concat <axis = -1> (b, f)",
        [STEPS, 2, 2 * SIZE],
        ["Split", "Squeeze", "Squeeze", "Concat"],
    ),
    "along another axis": (SQUEEZED + "y = Concat <axis = 1> (f, b)", [STEPS, 4, SIZE], ["Split", "Squeeze", "Squeeze", "Concat"]),
    "in a sum": (SQUEEZED + "y = Add (f, b)", [STEPS, 2, SIZE], ["Split", "Squeeze", "Squeeze", "Add"]),
    "moved there and back": (
        SQUEEZED + "ft = Transpose <perm = [1, 0, 2]> (f) w = Transpose <perm = [1, 0, 2]> (ft) y = Concat <axis = 2> (w, b)",
        [STEPS, 2, 2 * SIZE],
        ["Transpose", "Reshape"],
    ),
}


@pytest.mark.parametrize("case", MEETINGS)
def test_where_results_meet(case):
    after, shape, expected = MEETINGS[case]
    found, _ = joined(TwoNodes("LSTM", after, {"y": shape}))
    assert sorted(found) == sorted(["LSTM-bidirectional", *expected])


def test_results_that_are_moved_in_different_ways_do_not_meet():
    after = SQUEEZED + "t = Transpose <perm = [1, 0, 2]> (f) y = Concat <axis = 2> (t, b)"
    found, _ = joined(TwoNodes("LSTM", after, {"y": [2, 2, 2 * SIZE]}, steps=2), steps=2)
    assert sorted(found) == ["Concat", "LSTM-bidirectional", "Split", "Squeeze", "Squeeze", "Transpose"]


def test_results_that_meet_and_are_read_besides():
    after = SIDE_BY_SIDE + " h = Concat <axis = 0> (f_H, b_H) last = Neg (b_H) whole = Identity (f)"
    results = {**RESULTS, "h": [2, 2, SIZE], "last": [1, 2, SIZE], "whole": [STEPS, 2, SIZE], "f_C": [1, 2, SIZE]}
    found, _ = joined(TwoNodes("LSTM", after, results))
    assert found.count("Split") == 3


def test_parameters_of_activations_are_written_one_after_the_other():
    settings = (
        {"activations": ["LeakyRelu", "Affine"], "activation_alpha": [0.1, 0.7], "activation_beta": [0.2]},
        {"activations": ["HardSigmoid", "Tanh"], "activation_alpha": [0.3], "activation_beta": [0.4]},
    )
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, settings=settings)
    joined(nodes)
    left(nodes, bidirectional="equal", code="RNN-DIRECTIONS")
    same = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, settings=(settings[0], settings[0]))
    joined(same, bidirectional="equal")


@pytest.mark.parametrize(
    ("kind", "same"), [("RNN", {"clip": 0.4}), ("GRU", {"linear_before_reset": 1}), ("LSTM", {"input_forget": 1, "clip": 2.0})]
)
def test_settings_must_be_equal_and_are_kept(kind, same):
    joined(TwoNodes(kind, SIDE_BY_SIDE, RESULTS, settings=(same, same)))
    left(TwoNodes(kind, SIDE_BY_SIDE, RESULTS, settings=(same, {})))


def test_an_equal_transpose_of_the_same_sequence_is_the_same_sequence():
    before = "t = Transpose <perm = [1, 0, 2]> (xs) u = Transpose <perm = [1, 0, 2]> (xs) w = Transpose <perm = [1, 0, 2]> (xs)"
    nodes = TwoNodes("RNN", SIDE_BY_SIDE, {"y": [2, STEPS, 2 * SIZE]}, before, sources=("t", "u"))
    joined(nodes)
    other = before.replace("u = Transpose <perm = [1, 0, 2]> (xs)", "n = Neg (xs) u = Transpose <perm = [1, 0, 2]> (n)")
    left(TwoNodes("RNN", SIDE_BY_SIDE, {"y": [2, STEPS, 2 * SIZE]}, other, sources=("t", "u")))


def test_lengths_must_be_the_same():
    extra = (BIAS | {"lens"}, BIAS | {"lens"})
    joined(TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, extra=extra))
    left(TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, extra=extra, lens=("lens", "other")))
    left(TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, extra=(BIAS | {"lens"}, BIAS)))


def test_peepholes_on_one_side_only_stay():
    left(TwoNodes("LSTM", SIDE_BY_SIDE, RESULTS, extra=(BIAS | {"P"}, BIAS)))


def test_two_of_one_direction_stay():
    left(TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, settings=({}, {"direction": "forward"})))


def test_a_node_that_needs_the_result_of_the_other_stays():
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, extra=(BIAS, BIAS | {"initial_h"}))
    model = nodes.model()
    model.graph.node[1].input[5] = "f_H"
    after, report = apply(model, [both_directions])
    assert patches(report) == []
    assert "GRU-reverse" in ops(after)


def test_what_the_second_needs_is_brought_before_the_first():
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, extra=(BIAS, BIAS | {"initial_h"}))
    model = nodes.model()
    late = onnx.helper.make_node("Tanh", ["b_initial_h"], ["late"])
    model.graph.node[1].input[5] = "late"
    model.graph.node.insert(1, late)
    after, _ = apply(model, [both_directions], feeds=nodes.feeds())
    assert "GRU-bidirectional" in ops(after)


def test_weights_that_are_fed_are_joined_when_the_model_runs():
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS, fed=frozenset({"f_W", "b_W", "b_R"}))
    found, _ = joined(nodes)
    assert found.count("Concat") == 2


def test_those_that_meet_are_put_together_where_there_are_more():
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS)
    model = nodes.model()
    extra = onnx.NodeProto()
    extra.CopyFrom(model.graph.node[1])
    extra.name, extra.output[:] = "decoy", ["d_Y", "d_H"]
    model.graph.node.insert(0, extra)
    model.graph.output.append(onnx.helper.make_tensor_value_info("d_Y", onnx.TensorProto.FLOAT, [STEPS, 1, 2, SIZE]))
    after, _ = apply(model, [both_directions], feeds=nodes.feeds())
    assert sorted(ops(after)) == ["GRU-bidirectional", "GRU-reverse", "Reshape", "Transpose"]


def test_layers_become_one_after_the_other():
    first = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS)
    second = onnx.compose.add_prefix(TwoNodes("GRU", SIDE_BY_SIDE, RESULTS).model(), "l2_")
    rng = np.random.default_rng(0)
    for tensor in second.graph.initializer:
        if tensor.name.endswith("_W"):
            tensor.CopyFrom(onnx.numpy_helper.from_array(rng.random((1, 3 * SIZE, 2 * SIZE), np.float32), tensor.name))
    second.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 2 * SIZE
    model = onnx.compose.merge_models(first.model(), second, [("y", "l2_xs")])
    after, report = apply(model, [both_directions], feeds=first.feeds())
    assert patches(report) == ["both-directions"] * 2
    assert ops(after) == ["GRU-bidirectional", "Transpose", "Reshape"] * 2


def in_branches(other: str = "go", second: str = "r1 = Squeeze (b_Y, one) r = Identity (r1)") -> onnx.ModelProto:
    """Both nodes in Ifs of their own; `other` is the condition of the second."""
    nodes = TwoNodes("GRU", "", {})
    model, graph = nodes.model(), onnx.GraphProto()
    text = f"""<ir_version: 8, opset_import: ["": 18]>
    g (bool go, bool stop) => (float[n,2,{2 * SIZE}] y) {{
        f = If (go) <then_branch = t1 () => (float[n,2,{SIZE}] r0) {{ r0 = Squeeze (f_Y, one) }},
                     else_branch = e1 () => (float[n,2,{SIZE}] e) {{ e = Identity (nothing) }}>
        b = If ({other}) <then_branch = t2 () => (float[n,2,{SIZE}] r) {{ {second} }},
                     else_branch = e2 () => (float[n,2,{SIZE}] e) {{ e = Identity (nothing) }}>
        ft = Transpose <perm = [1, 0, 2]> (f) fu = Transpose <perm = [1, 0, 2]> (ft)
        y = Concat <axis = 2> (fu, b) }}"""
    graph = onnx.parser.parse_model(text).graph
    for place, node in enumerate(model.graph.node):
        branch = next(a.g for a in graph.node[place].attribute if a.name == "then_branch")
        branch.node.insert(0, node)
    del model.graph.node[:]
    model.graph.node.extend(graph.node)
    model.graph.input.extend(graph.input)
    model.graph.output.extend(graph.output)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((0, 2, SIZE), np.float32), "nothing"))
    return model


def test_nodes_in_two_ifs_on_one_condition_come_under_one():
    model, xs = in_branches(), TwoNodes("GRU").feeds()["xs"]
    after = model
    for go in (True, False):
        feeds = {"xs": xs, "go": np.array(go), "stop": np.array(True)}
        after, report = apply(model, [both_directions], feeds=feeds, check=False)
        assert patches(report) == ["both-directions"]
    expected = ["Concat", "GRU-bidirectional", "Identity", "Identity", "If", "Reshape", "Transpose"]
    assert sorted(ops(after)) == expected


def test_nodes_in_ifs_on_other_conditions_stay():
    after, report = apply(in_branches("stop"), [both_directions], check=False)
    assert patches(report) == []
    assert ops(after).count("If") == 2


REVERSE = "{y} = Slice ({x}, last, far, zero, last)"
BOUNDS = "last = Constant <value_ints = [-1]> () far = Constant <value_ints = [-9223372036854775808]> () "
TURNED = BOUNDS + REVERSE.format(x="xs", y="r")


def turned(after: str, results: dict, *, fires: bool = True, before: str = TURNED, **options: Any) -> list[str]:
    """What becomes of a forward node on xs and one on the reversed steps, both written as forward nodes."""
    nodes = TwoNodes("GRU", after, results, before, settings=({}, {"direction": "forward"}), sources=("xs", "r"), **options)
    result, report = apply(nodes.model(), [reversed_nodes, both_directions], feeds=nodes.feeds())
    assert (patches(report)[:1] == ["reversed-nodes"]) == fires
    return [op for op in ops(result) if op != "Constant"]


def test_a_node_between_two_reversals_runs_backwards_and_pairs():
    after = "f = Squeeze (f_Y, one) s = Squeeze (b_Y, one) " + REVERSE.format(x="s", y="b")
    found = turned(after + " y = Concat <axis = -1> (f, b)", RESULTS)
    assert found == ["GRU-bidirectional", "Transpose", "Reshape"]


def test_a_node_whose_final_state_alone_is_read_runs_backwards():
    assert turned("h = Neg (b_H) f = Neg (f_H)", {"h": [1, 2, SIZE], "f": [1, 2, SIZE]}) == [
        "GRU-bidirectional",
        "Split",
        "Neg",
        "Neg",
    ]


def test_a_node_whose_steps_are_read_as_they_are_stays():
    found = turned(SIDE_BY_SIDE, RESULTS, fires=False)
    assert found.count("GRU-forward") == 2


@pytest.mark.parametrize(("kind", "rows", "fires"), [("GRU", 1, True), ("GRU", 2, False), ("GRU", "N", False), ("RNN", 2, True)])
def test_a_cpu_turns_a_node_only_where_that_is_not_slower(kind, rows, fires):
    nodes = TwoNodes(
        kind,
        "h = Neg (b_H)",
        {"h": [1, rows, SIZE]},
        TURNED,
        settings=({}, {"direction": "forward"}),
        sources=("xs", "r"),
        rows=rows,
    )
    options = Options(bidirectional="narrow")
    _, report = apply(nodes.model(), [reversed_nodes], feeds=nodes.feeds(rows=2 if rows == "N" else rows), options=options)
    assert patches(report) == ["reversed-nodes"] * fires
    assert [reason.code for pair in report.pairs for reason in pair.reasons] == ["COST-DIRECTION"] * (not fires)


def test_a_node_with_lengths_between_reversals_stays():
    extra = (BIAS | {"lens"}, BIAS | {"lens"})
    turned("h = Neg (b_H) f = Neg (f_H)", {"h": [1, 2, SIZE], "f": [1, 2, SIZE]}, fires=False, extra=extra)


def test_a_node_on_reversed_rows_or_features_stays():
    other = BOUNDS + "two = Constant <value_ints = [2]> () r = Slice (xs, last, far, {axis}, last)"
    for axis in ("one", "two"):
        turned("h = Neg (b_H)", {"h": [1, 2, SIZE]}, fires=False, before=other.replace("{axis}", axis))


CPU_CASES = {
    "one narrow row": (TwoNodes("LSTM", SIDE_BY_SIDE, {"y": [STEPS, 1, 2 * SIZE]}, rows=1), None),
    "two rows": (TwoNodes("LSTM", SIDE_BY_SIDE, RESULTS), "2 rows"),
    "an unknown number of rows": (TwoNodes("LSTM", SIDE_BY_SIDE, {"y": [STEPS, "N", 2 * SIZE]}, rows="N"), "unknown number"),
    "a wide row": (TwoNodes("RNN", SIDE_BY_SIDE, {"y": [STEPS, 1, 400]}, rows=1, size=200), "width 200"),
    "a fed weight": (
        TwoNodes("LSTM", SIDE_BY_SIDE, {"y": [STEPS, 1, 2 * SIZE]}, rows=1, fed=frozenset({"f_W"})),
        "joined in every run",
    ),
    "an initial state": (
        TwoNodes("GRU", SIDE_BY_SIDE, {"y": [STEPS, 1, 2 * SIZE]}, rows=1, extra=(BIAS, BIAS | {"initial_h"})),
        "joined in every run",
    ),
    "results split in every run": (
        TwoNodes("LSTM", SIDE_BY_SIDE, {"y": [STEPS, 1, 2 * SIZE], "b_H": [1, 1, SIZE]}, rows=1),
        "split in every run",
    ),
}


@pytest.mark.parametrize("case", CPU_CASES)
def test_a_cpu_takes_one_node_only_where_it_is_not_slower(case):
    nodes, why = CPU_CASES[case]
    if why is None:
        joined(nodes, bidirectional="narrow", rows=1)
    else:
        _, report = apply(nodes.model(), [both_directions], options=Options(bidirectional="narrow"))
        assert [reason.code for pair in report.pairs for reason in pair.reasons] == ["COST-BIDIRECTIONAL"]
        assert why in report.pairs[0].reasons[0].detail


@pytest.mark.parametrize(("target", "one"), [("onnx", True), ("webgpu", True), ("qnn", True), ("coreml", False), ("cpu", False)])
def test_a_model_that_holds_two_nodes_becomes_one_where_the_target_has_it(target, one):
    nodes = TwoNodes("GRU", SIDE_BY_SIDE, RESULTS)
    after = ortscan.optimize(nodes.model(), target=target, verify=False)
    assert ("GRU-bidirectional" in ops(after)) == one
    assert_same_numbers(ort_run(after, nodes.feeds()), ort_run(nodes.model(), nodes.feeds()))
    assert "GRU-bidirectional" not in ops(ortscan.optimize(nodes.model(), target=target, skip=["both-directions"], verify=False))


@pytest.mark.parametrize("opset", [8, 9])
@pytest.mark.parametrize("first", ["forward", "reverse"])
def test_a_state_that_one_direction_lacks_is_0_in_every_opset(opset: int, first: str) -> None:
    ways = [first, "reverse" if first == "forward" else "forward"]
    model = onnx.parser.parse_model(f"""<ir_version: 4, opset_import: ["" : {opset}]>
        g (float[T,1,1] x) => (float[T,1,4] y) <float[1,2,1] w = {{1, 2}}, float[1,2,2] r = {{0.5, 0.25, -1, 1}}, float[1,1,2] h = {{1, -1}}> {{
            p = RNN <hidden_size = 2, direction = "{ways[0]}"> (x, w, r)
            q = RNN <hidden_size = 2, direction = "{ways[1]}"> (x, w, r, , , h)
            s = Squeeze <axes = [1]> (p) t = Squeeze <axes = [1]> (q)
            y = Concat <axis = 2> (s, t)
        }}""")
    feeds = {"x": np.arange(3, dtype=np.float32).reshape(3, 1, 1)}
    after, report = apply(model, [both_directions], feeds=feeds, options=Options(bidirectional="always"))
    assert patches(report) == ["both-directions"]
    onnx.checker.check_model(after, full_check=True)
