"""Each invariant is checked: a model that holds all of them passes, and one that breaks one is named with the patch."""

from collections.abc import Callable

import onnx_ir as ir
import pytest

from rewrites.base.errors import InvariantBroken, MalformedLoop
from rewrites.driver.invariants import check_invariants
from rewrites.loops import view
from tests.rewrites.apply import one_loop, prepared
from tests.rewrites.harness import loop, scan

TEXT = scan(
    'h1 = Add (h, w) ["inner"] y = If (t) <then_branch = p () => (float[2] u) { u = Neg (x) }, else_branch = q () => (float[2] v) { v = Abs (w) }>',
    given="float[2] s, float[3,2] xs, bool t",
    weights="float[2] w = {1, 2}",
    after='["outer"] r = Neg (z)',
    results="float[2] r, float[3,2] ys",
)


def sound(text: str = TEXT) -> ir.Model:
    ctx = prepared(text)
    check_invariants(ctx.model, "nothing")
    return ctx.model


def scan_of(model: ir.Model) -> ir.Node:
    return next(node for node in model.graph if node.op_type == "Scan")


def body_of(model: ir.Model) -> ir.Graph:
    return view(scan_of(model), 18).body


def branch_of(model: ir.Model) -> ir.Graph:
    return next(node for node in body_of(model) if node.op_type == "If").attributes["then_branch"].as_graph()


def test_a_sound_model_passes() -> None:
    sound()
    sound(loop("h1 = Add (h, h)", outputs="float[2] h1, float[2] h1"))
    sound(loop("", outputs="float[2] h, float[2] h"))


def out_of_order(model: ir.Model) -> None:
    node = scan_of(model)
    model.graph.remove(node)
    model.graph.append(node)


def read_from_a_sibling(model: ir.Model) -> None:
    model.graph.node(-1).replace_input_with(0, body_of(model).inputs[0])


def read_from_an_inner_body(model: ir.Model) -> None:
    inner = next(iter(branch_of(model))).outputs[0]
    next(iter(body_of(model))).replace_input_with(1, inner)


def returned_from_elsewhere(model: ir.Model) -> None:
    model.graph.outputs[0] = ir.Value(name="nowhere")


def name_of_an_outer_value(model: ir.Model) -> None:
    next(iter(branch_of(model))).outputs[0].name = "s"


def name_of_an_input(model: ir.Model) -> None:
    next(iter(body_of(model))).outputs[0].name = "x"


def name_of_a_sibling(model: ir.Model) -> None:
    model.graph.node(-1).outputs[0].name = "z"


def node_name_twice(model: ir.Model) -> None:
    scan_of(model).name = "outer"


def output_twice(model: ir.Model) -> None:
    body = body_of(model)
    body.outputs[1] = body.outputs[0]


def input_returned(model: ir.Model) -> None:
    body = body_of(model)
    body.outputs[1] = body.inputs[1]


def initializer_under_another_name(model: ir.Model) -> None:
    weight = model.graph.initializers["w"]
    dict.pop(model.graph.initializers.data if isinstance(model.graph.initializers.data, dict) else {}, "w", None)
    model.graph.initializers.data["other"] = weight


BREAKS: dict[str, tuple[Callable[[ir.Model], None], str]] = {
    "a node before what it reads": (out_of_order, "Neg 'outer' reads 'z', which is not defined there"),
    "a body's value read outside": (read_from_a_sibling, "Neg 'outer' reads 'h', which is not defined there"),
    "a branch's value read outside": (read_from_an_inner_body, "reads 'u', which is not defined there"),
    "an output from nowhere": (returned_from_elsewhere, "the output 'nowhere' of graph 'g' is not defined in it"),
    "a body value named like an outer one": (name_of_an_outer_value, "the name 's' is defined twice in one scope"),
    "a result named like a body input": (name_of_an_input, "the name 'x' is defined twice in one scope"),
    "two values of one name": (name_of_a_sibling, "the name 'z' is defined twice in one scope"),
    "two nodes of one name": (node_name_twice, "two nodes of the graph 'g' share a name"),
    "a body output twice": (output_twice, "output 1 of the body of"),
    "a body input returned": (input_returned, "output 1 of the body of"),
    "an initializer under another name": (initializer_under_another_name, "initializer 'w' is registered as 'other'"),
}


@pytest.mark.parametrize("case", BREAKS)
def test_a_broken_model_is_named_with_the_patch(case: str) -> None:
    model = sound()
    change, said = BREAKS[case]
    change(model)
    with pytest.raises(InvariantBroken) as error:
        check_invariants(model, "patch 7 (some-rule on main/Scan 'x')")
    assert said in str(error.value)
    assert str(error.value).startswith("after patch 7 (some-rule on main/Scan 'x'): ")


def test_a_loop_that_cannot_be_read_is_malformed() -> None:
    ctx = prepared(scan("h1 = Add (h, x) y = Neg (x)"))
    one_loop(ctx).attributes["num_scan_inputs"] = ir.AttrInt64("num_scan_inputs", 5)
    with pytest.raises(MalformedLoop):
        check_invariants(ctx.model, "patch 1")
