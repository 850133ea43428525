"""Loops that count in floating-point numbers: their steps are counted only if the numbers are exact."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

WHILE = """g (float[6,2,4] x, float[2,4] h) => (KIND k, float[2,4] l) {
    k, l = Loop <body = b (int64 it, bool c, KIND i, float[2,4] s) => (bool c1, KIND i1, float[2,4] s1) {
        j = Cast <to = 7> (i) a = Gather (x, j) t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a) NEXT }> (, yes, start, h) }"""
FORMS = {
    "up to a bound": (0, 1, 6, "i1 = Add (i, step) c1 = Less (i1, bound)"),
    "up to half a step less": (0, 1, 5.5, "i1 = Add (step, i) c1 = LessOrEqual (i1, bound)"),
    "from the third, by two": (2, 2, 6, "i1 = Add (i, step) c1 = Greater (bound, i1)"),
    "down": (5, 1, -0.5, "i1 = Sub (i, step) c1 = Greater (i1, bound)"),
    "until not": (0, 1, 5, "i1 = Add (i, step) n = Greater (i1, bound) c1 = Not (n)"),
}
THROUGH = """g (float[1] x) => (int64 l, int64[N] ys) {
    l, ys = Loop <body = b (int64 it, bool c, int64 i) => (bool c1, int64 i1, int64 e) {
        c1 = Identity (c) f = Cast <to = 1> (i) n = Add (f, step) i1 = Cast <to = 7> (n) e = Identity (i) }> (steps, yes, start) }"""


def written(text: str, kind: str, **constants: float) -> onnx.ModelProto:
    model = model_from_text(text.replace("KIND", kind), 18, check=False)
    floats = {"float16": np.float16, "double": np.float64}.get(kind, np.float32)
    types = {"yes": np.bool_, "steps": np.int64} | ({"start": np.int64} if kind == "int64" else {})
    for name, number in ({"yes": 1} | constants).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(number, types.get(name, floats)), name))
    return model


def left(model: onnx.ModelProto) -> set[str]:
    rng = np.random.default_rng(0)
    shapes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
    feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    after = ortscan.optimize(model, verify=False)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
    return {node.op_type for node in after.graph.node}


@pytest.mark.parametrize("kind", ["float", "float16", "double"])
@pytest.mark.parametrize("form", FORMS)
def test_whole_numbers_count_steps(form: str, kind: str) -> None:
    start, step, bound, said = FORMS[form]
    assert "Loop" not in left(written(WHILE.replace("NEXT", said), kind, start=start, step=step, bound=bound))


@pytest.mark.parametrize(("start", "step", "bound"), [(0, 0.5, 2.5), (0, 0.1, 0.55), (0.25, 1, 5)])
def test_other_numbers_do_not(start: float, step: float, bound: float) -> None:
    assert "Loop" in left(written(WHILE.replace("NEXT", FORMS["up to a bound"][3]), "float", start=start, step=step, bound=bound))


def test_a_bound_that_is_not_known_keeps_the_condition() -> None:
    free = WHILE.replace("NEXT", FORMS["up to a bound"][3])
    model = written(free.replace("float[2,4] h) =>", "float[2,4] h, float bound) =>"), "float", start=0, step=1)
    after = ortscan.optimize(model)
    assert "Loop" in {node.op_type for node in after.graph.node}


COMPARED = """g (int64[1] n, int64[1] k0) => (int64[1] l) <int64[1] one = {1}, int64[1] zero = {0}, bool yes = {1}> {
    l = Loop <body = b (int64 it, bool c, int64[1] k) => (bool c1, int64[1] k1) {
        k1 = Add (k, one) f = Cast <to = 1> (k1) e = Cast <to = 1> (n) d = Less (f, e) c1 = Squeeze (d) }> (, yes, START) }"""


@pytest.mark.parametrize(("k0", "n"), [(0, 5), (2**24 - 2, 2**24 + 5), (2**24 - 1, 2**24 + 1), (2**25 + 1, 2**25 + 7)])
def test_large_numbers_that_are_near_each_other_are_compared_as_they_were(k0: int, n: int) -> None:
    model, feeds = model_from_text(COMPARED.replace("START", "k0"), 18, check=False), {"n": np.array([n]), "k0": np.array([k0])}
    after = ortscan.optimize(model, verify=False)
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))


def test_one_number_that_is_not_known_counts_steps() -> None:
    after = ortscan.optimize(model_from_text(COMPARED.replace("START", "zero"), 18, check=False), verify=False)
    assert "Loop" not in {node.op_type for node in after.graph.node}


@pytest.mark.parametrize(
    ("start", "step", "steps"), [(2**24, 1, 5), (2**24 - 3, 1, 8), (0, 1001, 17100), (-(2**24), -1, 4), (7, 3, 9)]
)
def test_integers_that_count_through_floats_stand_still_where_those_do(start: int, step: float, steps: int) -> None:
    left(written(THROUGH, "int64", start=start, step=step, steps=steps))
