"""Loops as frameworks write them, with a counter, a condition and a buffer of results, end in the forms of plain Scans."""

import numpy as np
import pytest

import ortscan
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

STEPS = 12
CORES = {
    "LinearAttention": (
        "x = Gather <axis = 0> (xs, i)  k, v = Split <axis = 1, num_outputs = 2> (x)  c = Constant <value = float {0.9}> ()"
        '  d = Mul (S, c)  o = Einsum <equation = "hk,hv->hkv"> (k, v)  S1 = Add (d, o)  y = Einsum <equation = "hk,hkv->hv"> (v, S1)',
        "2,3,3",
        "2,3",
    ),
    "CumSum": (
        "x = Gather <axis = 0> (xs, i)  n = Add (i, one)  f = Cast <to = 1> (n)  d = Sub (x, S)  e = Div (d, f)  S1 = Add (S, e)"
        "  y = Identity (S1)",
        "2,6",
        "2,6",
    ),
}


def as_jax(core: str, state: str, row: str) -> str:
    """A while-loop that counts, and writes each row into a buffer."""
    return f"""g (float[{STEPS},2,6] xs) => (float[{STEPS},{row}] ys)
        <int64 m = {{{STEPS}}}, int64 zero = {{0}}, int64[3] all = {{{STEPS},{row}}}, int64[{len(state.split(","))}] one_state = {{{state}}}> {{
        empty = ConstantOfShape (all)  S0 = ConstantOfShape (one_state)  go = Less (zero, m)
        last, end, ys = Loop <body = b (int64 t, bool g0, int64 i, float[{state}] S, float[{STEPS},{row}] old)
            => (bool g1, int64 i1, float[{state}] S1, float[{STEPS},{row}] new) {{
            one = Constant <value = int64 {{1}}> ()  {core}  i1 = Add (i, one)  g1 = Less (i1, m)
            index = Constant <value = int64[2] {{1, 1}}> ()  at = Reshape (i, index)
            axis = Constant <value = int64[1] {{0}}> ()  rows = Unsqueeze (y, axis)  new = ScatterND (old, at, rows) }}> (, go, zero, S0, empty) }}"""


def as_tensorflow(core: str, state: str, row: str) -> str:
    """A loop that counts beside its own number, and collects tensors."""
    return f"""g (float[{STEPS},2,6] xs) => (float[A,B,C] ys)
        <int64 m = {{{STEPS}}}, int64 zero = {{0}}, int64[{len(state.split(","))}] one_state = {{{state}}}> {{
        none = SequenceEmpty <dtype = 1> ()  S0 = ConstantOfShape (one_state)  go = Less (zero, m)
        last, end, all = Loop <body = b (int64 t, bool g0, int64 i, float[{state}] S, seq(float[{row}]) old)
            => (bool g1, int64 i1, float[{state}] S1, seq(float[{row}]) new) {{
            one = Constant <value = int64 {{1}}> ()  {core}  i1 = Add (i, one)  g1 = Less (i1, m)  new = SequenceInsert (old, y) }}>
            (m, go, zero, S0, none)
        ys = ConcatFromSequence <axis = 0, new_axis = 1> (all) }}"""


@pytest.mark.parametrize("write", [as_jax, as_tensorflow])
@pytest.mark.parametrize("operator", CORES)
def test_a_loop_with_a_counter_and_a_buffer_ends_in_the_form_of_its_scan(operator, write) -> None:
    model = model_from_text(write(*CORES[operator]), 18)
    result = ortscan.optimize(model, verify=False)
    operators = [node.op_type for node in result.graph.node]
    assert operator in operators
    assert not {"Loop", "Scan"} & set(operators)
    feeds = {"xs": np.random.default_rng(0).standard_normal((STEPS, 2, 6)).astype(np.float32)}
    np.testing.assert_allclose(ort_run(result, feeds)[0], ort_run(model, feeds)[0], rtol=1e-5, atol=1e-6)
