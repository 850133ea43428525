"""Sizes far beyond memory cost nothing while a model is rewritten: what is not run is not made."""

import pytest

import ortscan
from tests.support.text import model_from_text

DOUBLED = " ".join(f"c{i + 1} = Concat <axis = 0> (c{i}, c{i})" for i in range(40))
CUM = "h1 = Add (h, x)"


def scan(body: str, size: int, before: str = "") -> str:
    return f"""
    g (float[{size}] h0, float[5,{size}] xs) => (float[{size}] hn) {{
        {before}
        hn = Scan <num_scan_inputs = 1, body = b (float[{size}] h, float[{size}] x) => (float[{size}] h1) {{ {body} }}> (h0, xs)
    }}"""


@pytest.mark.parametrize(
    ("before", "body"),
    [
        (f"c0 = Constant <value = float[1] {{1}}> () {DOUBLED} q = ReduceSum <keepdims = 0> (c40)", "a = Add (h, q) h1 = Add (a, x)"),
        (f"c0 = Constant <value = int64[1] {{1}}> () {DOUBLED} n = Size (c40) q = Cast <to = 1> (n)", "a = Add (h, q) h1 = Add (a, x)"),
        ("", f"c0 = ReduceSum <keepdims = 1> (x) {DOUBLED} q = ReduceSum <keepdims = 0> (c40) h1 = Add (h, q)"),
    ],
)  # fmt: skip
def test_a_chain_of_concats_that_double_is_not_followed_element_by_element(before, body):
    ortscan.explain(model_from_text(scan(body, 3, before), 18, check=False))


@pytest.mark.parametrize("body", [CUM, "a = Add (h, x) h1 = Tanh (a)", "z = Sigmoid (x) h1 = Mul (z, h)"])
def test_states_of_a_trillion_elements_are_rewritten_without_being_made(body):
    ortscan.explain(model_from_text(scan(body, 1 << 40), 18, check=False))


def test_steps_beyond_counting_run_in_blocks_without_a_constant_for_each():
    text = """g (float[10000000000000,4] xs) => (float[10000000000000,4] ys) {
        ys = Scan <num_scan_inputs = 1, body = b (float[4] x) => (float[4] k) { a = Exp (x) k = Tanh (a) }> (xs)
    }"""
    result = ortscan.optimize(model_from_text(text, 18, check=False), verify=False)
    assert result.ByteSize() < 1 << 20


def test_a_recurrent_node_of_a_width_beyond_memory_is_written_out_as_it_is_read():
    wide = 1 << 40
    text = f"""g (double[3,1,2] x, double[1,{4 * wide},2] w, double[1,{4 * wide},{wide}] r) => (double[3,1,1,{wide}] y) {{
        y = LSTM <hidden_size = {wide}> (x, w, r)
    }}"""
    ortscan.explain(model_from_text(text, 18, check=False))
