"""Declared shapes that the operators contradict are forgotten, and no others."""

import onnx
import onnx_ir as ir
import pytest

from rewrites.prepare import prepare
from rewrites.rules import RULES
from tests.rewrites.apply import apply, context_of, prepared, read
from tests.rewrites.fission.harness import data
from tests.rewrites.normal_form.harness import loop, scan
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run


def shapes(model: onnx.ModelProto) -> dict[str, str]:
    ctx_model = prepared_proto(model)
    values = [value for node in ctx_model.graph.all_nodes() for value in node.outputs]
    inputs = [value for graph in ctx_model.graph.subgraphs() for value in graph.inputs]
    return {value.name or "": str(value.shape) for value in [*values, *inputs]}


def prepared_proto(model: onnx.ModelProto) -> ir.Model:
    ctx = context_of(model)
    prepare(ctx)
    return ctx.model


def declared(name: str, shape: list[int | str]) -> onnx.ModelProto:
    model = read(scan("h1 = Add (h, x) e = Exp (x) y = Tanh (e)", before="a = Neg (xs)", operands="s, a"))
    info = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
    body = next(node for node in model.graph.node if node.op_type == "Scan").attribute
    graph = model.graph if name == "a" else next(attribute.g for attribute in body if attribute.name == "body")
    graph.value_info.append(info)
    return model


@pytest.mark.parametrize(
    ("name", "shape", "found"),
    [
        ("a", [7, 2], "[3,2]"),
        ("a", [3], "[3,2]"),
        ("a", ["T", 2], "[3,2]"),
        ("e", [9], "[2]"),
        ("e", [2, 2], "[2]"),
        ("e", ["K"], "[2]"),
    ],
)
def test_a_shape_that_the_operators_contradict_is_replaced(name: str, shape: list[int | str], found: str) -> None:
    model = declared(name, shape)
    assert shapes(model)[name] == found
    apply(model, RULES, feeds=data(model), check=False)


def test_a_shape_that_only_the_declaration_knows_stays() -> None:
    text = "g (float[N,2] x, int64[1] n) => (float[M] y) <float[4,K] e> { e = Reshape (x, k) k = Concat <axis = 0> (n, n) y = ReduceSum <keepdims = 0> (e, one) }"
    model = read(
        text.replace("e = Reshape (x, k) k = Concat <axis = 0> (n, n)", "k = Concat <axis = 0> (n, n) e = Reshape (x, k)").replace(
            "<float[4,K] e>", "<int64[1] one = {1}, float[4,K] e>"
        )
    )
    assert shapes(model)["e"] == "[4,K]"


GROWING = "h1 = Concat <axis = 0> (h, s) n = Shape (h) y = Identity (n)"


@pytest.mark.parametrize("given", ["float[2] h", "float[5] h", "float[1,1] h"])
def test_the_declared_shape_of_a_state_that_a_step_changes_is_forgotten(given: str) -> None:
    text = loop(GROWING, inputs=given, outputs="float[2] h1, int64[1] y", results="float[M] z, int64[N,1] ys")
    model = read(text, check=False)
    assert shapes(model)["h"] == "None"
    after, _ = apply(model, RULES, check=False)
    assert ort_run(after, data(model))[1].tolist() == [[2], [4], [6]]  # onnxruntime folds the original's Shape to what is declared


def test_the_declared_shape_of_a_state_that_keeps_it_stays() -> None:
    assert shapes(read(loop("h1 = Add (h, h) y = Tanh (h)")))["h"] == "[2]"
    text = loop(
        "h1 = Add (h, h) y = Tanh (h)",
        given="float[B] s",
        inputs="float[B] h",
        outputs="float[B] h1, float[B] y",
        results="float[B] z, float[N,B] ys",
    )
    assert shapes(read(text))["h"] == "[B]"


def test_states_that_change_because_of_each_other_are_all_forgotten() -> None:
    text = loop(
        "a1 = Concat <axis = 0> (b, s) b1 = Identity (a) n = Shape (b) y = Identity (n)",
        inputs="float[2] a, float[2] b",
        outputs="float[2] a1, float[2] b1, int64[1] y",
        operands="s, s",
        outer="p, q, ys",
        results="float[M] p, float[L] q, int64[N,1] ys",
    )
    model = read(text, check=False)
    found = shapes(model)
    assert (found["a"], found["b"]) == ("None", "None")
    after, _ = apply(model, RULES, check=False)
    assert_same_numbers(ort_run(after, data(model)), run_model(model, data(model)))


def test_what_is_declared_of_values_made_from_such_a_state_is_forgotten() -> None:
    text = loop(
        "h1 = Concat <axis = 0> (h, s) e = Exp (h) n = Shape (e) y = Identity (n)",
        outputs="float[2] h1, int64[1] y",
        results="float[M] z, int64[N,1] ys",
    ).replace("y) { c1", "y) <float[2] e> { c1")
    model = read(text, check=False)
    assert shapes(model)["e"] == "None"
    after, _ = apply(model, RULES, check=False)
    assert_same_numbers(ort_run(after, data(model)), run_model(model, data(model)))


def test_a_loop_without_a_body_is_refused_elsewhere() -> None:
    assert (
        prepared("g (int64 m, bool c, float[2] s) => (float[2] z) { z = Loop (m, c, s) }", check=False).model.graph.outputs[0].name
        == "z"
    )
