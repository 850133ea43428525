"""Closed forms for scan inputs that are declared without a rank. The rank of a step comes from the body."""

from functools import partial

import numpy as np
import pytest

from rewrites.fission import loop_fission
from rewrites.graph.context import Options
from rewrites.recurrences.cumulative import cumulative, cumulative_logsumexp
from tests.rewrites import harness
from tests.rewrites.harness import scan

becomes = partial(harness.becomes, check=False)  # onnx's checker asks for the shapes of inputs, onnxruntime does not

LOG_SUM = "m = Max(h, x)  a = Sub(h, m)  b = Exp(a)  c = Sub(x, m)  d = Exp(c)  e = Add(b, d)  f = Log(e)  h1 = Add(f, m)"
BODIES = {
    "sum": "h1 = Add(h, x)  y = Identity(h1)",
    "sum before the step": "h1 = Add(h, x)  y = Identity(h)",
    "difference": "h1 = Sub(h, x)  y = Identity(h1)",
    "masked sum": "z = Constant<value_float=0.0>()  c = Less(z, x)  a = Add(h, x)  h1 = Where(c, a, h)  y = Identity(h1)",
}


@pytest.mark.parametrize("rows", ["", "3,"])
@pytest.mark.parametrize("direction", ["", ", scan_input_directions = [1], scan_output_directions = [1]"])
@pytest.mark.parametrize("initial", ["declared", "undeclared"])
@pytest.mark.parametrize("name", BODIES)
def test_a_running_sum_of_an_input_without_a_rank_has_the_loops_shape(name: str, initial: str, direction: str, rows: str) -> None:
    row = f"float[{rows}2]"
    first = row if initial == "declared" else "float[]"
    text = scan(
        BODIES[name],
        inputs=f"{row} h, {row} x",
        outputs=f"{row} h1, {row} y",
        given=f"{first} s, float[] xs",
        results=f"{row} z, float[T,{rows}2] ys",
        attributes=f"num_scan_inputs = 1{direction}",
    )
    becomes(cumulative, text, feeds=_feeds(rows))


@pytest.mark.parametrize("operator", ["Max", "Min"])
def test_the_last_extreme_of_an_input_without_a_rank_has_the_loops_shape(operator: str) -> None:
    text = scan(f"h1 = {operator}(h, x)", outputs="float[2] h1", given="float[2] s, float[] xs", results="float[2] z", outer="z")
    becomes(cumulative, text, feeds=_feeds(""))


@pytest.mark.parametrize("initial", ["float[2]", "float[]"])
def test_a_log_sum_of_an_input_without_a_rank_has_the_loops_shape(initial: str) -> None:
    text = scan(f"{LOG_SUM}  y = Identity(h1)", given=f"{initial} s, float[] xs", results="float[2] z, float[T,2] ys")
    becomes(cumulative_logsumexp, text, feeds=_feeds(""))


def test_the_rank_of_a_row_that_the_state_broadcasts_to_comes_from_the_body() -> None:
    text = scan(
        "h1 = Add(h, x)  y = Identity(h1)",
        inputs="float[3,2] h, float[2] x",
        outputs="float[3,2] h1, float[3,2] y",
        given="float[3,2] s, float[] xs",
        results="float[3,2] z, float[T,3,2] ys",
    )
    feeds = _feeds("3,")
    becomes(cumulative, text, feeds=feeds | {"xs": feeds["xs"][:, 0]})


def test_an_input_without_a_rank_is_cut_into_blocks_of_its_rows() -> None:
    text = scan(
        "a = Exp(x)  b = Sin(x)  c = Cos(w)  d = Add(a, b)  y = Mul(d, c)",
        inputs="float[3,2] x, float[3,2] w",
        outputs="float[3,2] y",
        attributes="num_scan_inputs = 2",
        given="float[40,3,2] xs, float[] ws",
        operands="xs, ws",
        results="float[40,3,2] ys",
        outer="ys",
    )
    numbers = np.random.default_rng(0).normal(size=(2, 40, 3, 2)).astype(np.float32)
    becomes(loop_fission, text, feeds=dict(zip(("xs", "ws"), numbers, strict=True)), options=Options(memory_budget=2000))


def _feeds(rows: str) -> dict[str, np.ndarray]:
    shape = (3, 2) if rows else (2,)
    numbers = np.random.default_rng(0).normal(size=(8, *shape)).astype(np.float32)
    return {"s": numbers[0], "xs": numbers[1:]}
