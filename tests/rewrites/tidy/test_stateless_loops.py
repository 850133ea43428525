import numpy as np
import pytest

from rewrites.cleanup import dead_code
from rewrites.loop_form import induction_states
from tests.rewrites.apply import apply

TEXT = """g (float[3,2] xs, int64 m) => (float[N,2] ys) <int64 zero = {0}, int64 one = {1}, bool yes = {1}> {
    n, ys = Loop <body = b (int64 i, bool c, int64 k) => (bool c1, int64 k1, float[2] y) {
        c1 = Identity (c)  k1 = Add (k, one)  x = Gather (xs, k)  y = Tanh (x)
    }> (m, yes, zero) }"""
FEEDS = {"xs": np.arange(6, dtype=np.float32).reshape(3, 2), "m": np.array(2)}


@pytest.mark.parametrize("opset", [8, 9, 10])
def test_a_loop_of_an_older_opset_keeps_something_to_carry(opset: int) -> None:
    after, _ = apply(TEXT, [induction_states, dead_code], opset=opset, feeds=FEEDS)
    (loop,) = [node for node in after.graph.node if node.op_type == "Loop"]
    assert len(loop.input) == 3
    assert loop.input[2] == "m"


def test_a_loop_of_today_carries_nothing() -> None:
    after, _ = apply(TEXT, [induction_states, dead_code], opset=11, feeds=FEEDS)
    (loop,) = [node for node in after.graph.node if node.op_type == "Loop"]
    assert len(loop.input) == 2
