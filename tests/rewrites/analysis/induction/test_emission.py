"""Nodes written for an affine expression give its number."""

import random

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from ortscan import optimize
from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, Dim
from rewrites.analysis.induction.emission import emit, emit_multiple, scalar_of
from tests.rewrites.apply import prepared
from tests.support.text import assert_same_numbers, model_from_text, ort_run

GRAPH = "g (float[B,3,T] x, int64 m, int32[1] n, int64 i) => (int64 y) { y = Neg (m) }"
FEEDS = {"x": np.zeros((2, 3, 5), np.float32), "m": np.array(-7), "n": np.array([4], np.int32), "i": np.array(6)}


def test_an_expression_written_as_nodes_is_its_number() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        ctx = prepared(GRAPH, check=False)
        x, m, n, i = ctx.model.graph.inputs
        numbers = {Dim("B", x, 0): 2, Dim("T", x, 2): 5, m: -7, n: 4, STEP: 6}
        expression = AffineExpression.of(rng.randint(-3, 3))
        for symbol in rng.sample(list(numbers), rng.randint(0, 4)):
            expression = expression + AffineExpression.symbol(symbol) * AffineExpression.of(rng.choice([-2, -1, 1, 3]))
        wanted = int(expression.const.item()) + sum(expression.factor(symbol) * number for symbol, number in numbers.items())
        b = ctx.builder()
        result = b.op("Identity", emit(b, expression, {STEP: i}))
        b.insert_before(ctx.model.graph.node(0))
        ctx.model.graph.outputs.append(result)
        found = ort_run(ir.to_proto(ctx.model), FEEDS)[1]
        assert (found.dtype, found.shape, int(found)) == (np.int64, (), wanted)


@pytest.mark.parametrize(("kind", "step"), [(ir.DataType.INT32, 3), (ir.DataType.INT64, -1), (ir.DataType.INT32, 1)])
def test_multiples_of_numbers_have_the_type_asked_for(kind: ir.DataType, step: int) -> None:
    ctx = prepared(GRAPH, check=False)
    b = ctx.builder()
    results = [
        emit_multiple(b, scalar_of(b, ctx.model.graph.inputs[2]), step, kind),
        emit_multiple(b, ctx.model.graph.inputs[1], step, kind),
    ]
    results = [b.op("Identity", one) for one in results]
    b.insert_before(ctx.model.graph.node(0))
    ctx.model.graph.outputs.extend(results)
    found = ort_run(ir.to_proto(ctx.model), FEEDS)[1:]
    assert [(array.dtype, int(array)) for array in found] == [(kind.numpy(), 4 * step), (kind.numpy(), -7 * step)]


COUNTED = """g (float[T,2] xs, float[2] s, int64 m, int64[1] k0) => (float[2] z, int64[1] n) <int64[1] one = {1}> {
    z, n = Loop <body = b (int64 i, bool c, float[2] h, int64[1] k) => (bool c1, float[2] h1, int64[1] k1) {
        c1 = Identity (c)  k1 = Add (k, one)  x = Gather (xs, i)  h0 = Add (h, x)  h1 = Tanh (h0)
    }> (m, , s, k0) }"""


@pytest.mark.long
@pytest.mark.parametrize("opset", [7, 8, 9, 11, 12])
def test_a_count_of_steps_is_never_below_zero_in_any_opset(opset: int) -> None:
    model = model_from_text(COUNTED, opset, ir_version=8)
    after = optimize(model, opset="keep", verify=False)
    assert isinstance(after, onnx.ModelProto)
    onnx.checker.check_model(after, full_check=True)
    for steps in (-1, 0, 1, 3):
        feeds = {"xs": np.ones((3, 2), np.float32), "s": np.zeros(2, np.float32), "m": np.array(steps), "k0": np.array([5])}
        assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
