"""Declared shapes that the operators contradict are forgotten, and no others."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.driver.prepare import prepare
from rewrites.registry import RULES
from tests.rewrites.apply import apply, context_of, prepared, read
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import loop, scan
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run


def shapes(model: onnx.ModelProto) -> dict[str, str]:
    ctx_model = prepared_proto(model)
    values = [value for node in ctx_model.graph.all_nodes() for value in node.outputs]
    inputs = [value for graph in ctx_model.graph.subgraphs() for value in graph.inputs]
    return {value.name or "": str(value.shape) for value in [*values, *inputs]}


def open_dims(model: onnx.ModelProto, name: str) -> int:
    """The rank of a value none of whose sizes is known."""
    graph = prepared_proto(model).graph
    values = {*(value for node in graph.all_nodes() for value in node.outputs), *(v for g in graph.subgraphs() for v in g.inputs)}
    (shape,) = [value.shape for value in values if value.name == name]
    assert shape is not None
    assert not any(isinstance(dim, int) for dim in shape.dims)
    return len(shape)


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
    assert open_dims(model, "h") == 1
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
    assert open_dims(model, "a") == open_dims(model, "b") == 1
    after, _ = apply(model, RULES, check=False)
    assert_same_numbers(ort_run(after, data(model)), run_model(model, data(model)))


def test_what_is_declared_of_values_made_from_such_a_state_is_forgotten() -> None:
    text = loop(
        "h1 = Concat <axis = 0> (h, s) e = Exp (h) n = Shape (e) y = Identity (n)",
        outputs="float[2] h1, int64[1] y",
        results="float[M] z, int64[N,1] ys",
    ).replace("y) { c1", "y) <float[2] e> { c1")
    model = read(text, check=False)
    assert open_dims(model, "e") == 1
    after, _ = apply(model, RULES, check=False)
    assert_same_numbers(ort_run(after, data(model)), run_model(model, data(model)))


def test_a_loop_without_a_body_is_refused_elsewhere() -> None:
    assert (
        prepared("g (int64 m, bool c, float[2] s) => (float[2] z) { z = Loop (m, c, s) }", check=False).model.graph.outputs[0].name
        == "z"
    )


STEPS = "z = Loop <body = b (int64[1] i, bool c, float h) => (bool c1, float h1) {{ c1 = Identity (c) h1 = {} }}> (m, , s)"


def test_what_is_declared_of_values_made_from_such_a_loops_results_is_forgotten() -> None:
    text = f"""g (float s, int64[1] m) => (float[P,Q,R] ys) <int64 n = {{4}}, bool t = {{1}}, int64[1] axis = {{0}}> {{ {STEPS.format("Cast <to = 1> (i)")}
        ys = Loop <body = b2 (int64 j, bool d) => (bool d1, float[1] o) {{ d1 = Identity (d) o = Unsqueeze (z, axis) }}> (n, t) }}"""
    model = read(text, check=False)
    feeds = {"s": np.array(1, np.float32), "m": np.array([2])}
    after, _ = apply(model, RULES, check=False)
    assert ort_run(model, feeds)[0].shape == ort_run(after, feeds)[0].shape == (4, 1, 1)


def test_what_only_the_declaration_knows_stays_where_no_state_is_declared_wrong() -> None:
    text = f"""g (float s, int64[1] m, float[N] w, int64[1] n) => (float[P] y) <int64[1] axis = {{0}}, float[4] e> {{
        {STEPS.format("Neg (h)")} u = Unsqueeze (z, axis) k = Reshape (w, n) e = Mul (u, k) y = Neg (e) }}"""
    assert shapes(read(text))["e"] == "[4]"


def test_a_state_that_follows_one_that_varies_is_doubted_too() -> None:
    inner = "v = Loop <body = d (int64 j, bool e, g) => (e1, g1) { e1 = Identity (e) g1 = Slice (g, zero, one, zero) }> (m, , h)"
    again = "u = Loop <body = f (int64 k, bool l, float[2] p) => (l1, p1) { l1 = Identity (l) p1 = Tanh (p) }> (two, , h)"
    text = (
        loop(
            f"{inner} {again} w = Abs (v) h1 = Identity (w) n = Shape (u) y = Identity (n)",
            outputs="float[2] h1, int64[1] y",
            given="float[2] s, int64 m",
            results="float[M] z, int64[N,1] ys",
            steps=3,
            weights="int64[1] zero = {0}, int64[1] one = {1}, int64 two = {2}",
        )
        .replace("}> (m, , s)", "}> (three, , s)")
        .replace("int64 m = {3}", "int64 three = {3}")
    )
    model = read(text, check=False)
    assert (open_dims(model, "h"), open_dims(model, "p")) == (1, 1)
    after, _ = apply(model, RULES, check=False)
    feeds = {"s": np.ones(2, np.float32), "m": np.array(1)}
    assert ort_run(after, feeds)[1].tolist() == [[2], [1], [1]]


def test_a_name_that_a_body_declares_is_not_that_of_a_size_outside() -> None:
    step = "c1 = Identity (c) e = ReduceSum <keepdims = 0> (p) p1 = Add (w, e)"
    text = f"""g (float[T,K] xs, float[N] w, float s) => (float z, float[T] ys) <int64 two = {{2}}> {{
        z, ys = Scan <num_scan_inputs = 1, body = b (float h, float[N] x) => (float h1, float y) {{
            f = Loop (two, , x) <body = d (int64 i, bool c, p) => (c1, p1) {{ {step} }}>
            y = ReduceSum <keepdims = 0> (f) h1 = Add (h, y) }}> (s, xs) }}"""
    model = read(text)
    assert shapes(model)["x"] == "[K]"
    apply(model, RULES, feeds=data(model, K=5, N=2))
