"""Each value before a loop is read once, however many paths lead to it."""

import numpy as np
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

_SCAN = """h, ys = Scan <num_scan_inputs = 2, body = b (float[2] s, float[2] e, float[1] w) => (float[2] s1, float[2] o) {
    d = Sub (e, s) m = Mul (d, w) s1 = Add (s, m) o = Identity (s1) }> (h0, xs, ws)"""


def _chain(step: str, count: int) -> str:
    return (
        "r0 = Sin (k) "
        + " ".join(step.format(old=f"r{at}", new=f"r{at + 1}") for at in range(count))
        + f" ws = Identity (r{count})"
    )


@pytest.mark.parametrize(
    ("step", "count"),
    [
        ("{new} = Mul ({old}, {old})", 60),
        ("p{new} = Neg ({old}) {new} = Mul (p{new}, {old})", 60),
        ("p{new} = Add ({old}, {old}) q{new} = Sub (p{new}, {old}) {new} = Mul (q{new}, {old})", 60),
        ("{new} = Mul ({old}, {old})", 2000),
    ],
)
def test_many_paths_through_nodes_before_a_loop_are_read_quickly(step, count):
    text = f"g (float[2] h0, float[5, 2] xs, float[5, 1] k) => (float[2] h, float[5, 2] ys) {{ {_chain(step, count)} {_SCAN} }}"
    model = model_from_text(text, 18)
    after = ortscan.optimize(model, verify=False)
    rng = np.random.default_rng(2)
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in {"h0": (2,), "xs": (5, 2), "k": (5, 1)}.items()}
    assert_same_numbers(ort_run(after, feeds), ort_run(model, feeds))
