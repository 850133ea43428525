"""Strings that a Loop stacks stay with the values they are copied from."""

import numpy as np
import onnx
import pytest

import ortscan
from tests.rewrites.apply import read
from tests.support.runtime import ort_run

WORDS = np.array(["a", "a word that is longer than others", ""], object)
LOOP = """g (string[3] x, string[9,3] t, float s, float most) => (float z, string[N,3] ys) <bool yes = {{1}}> {{
    z, ys = Loop <body = b (int64 i, bool c, float h) => (bool c1, float h1, string[3] y) {{
        h1 = Add (h, h) c1 = Less (h1, most) {inside} }}> (, yes, s) }}"""
FEEDS = {"x": WORDS, "t": np.array([WORDS] * 9), "s": np.array(1, np.float32), "most": np.array(8, np.float32)}
SCAN = "y = Scan <num_scan_inputs = 1, body = s (string[3] g, int64 k) => (string[3] g1) { g1 = Identity (x) }> (x, two)"


def inside(model: onnx.ModelProto) -> list[str]:
    (loop,) = (node for node in model.graph.node if node.op_type == "Loop")
    return [node.op_type for node in loop.attribute[0].g.node]


def test_a_scan_that_gives_what_it_was_given_leaves_the_strings_where_they_are() -> None:
    after = ortscan.optimize(read(LOOP.format(inside=f"two = Constant <value_ints = [1, 2]> () {SCAN}")), verify=False)
    assert inside(after) == ["Add", "Less", "Identity", "Where"]
    for optimised in (True, False):
        _, stack = ort_run(after, FEEDS, optimised=optimised)
        assert stack.tolist() == [WORDS.tolist()] * 3


@pytest.mark.long
@pytest.mark.parametrize("words", ["y = Identity (x)", "k = Concat <axis = 0> (x) y = Identity (k)"])
def test_a_model_that_stacks_them_so_itself_is_compared_by_what_it_means(words: str) -> None:
    model = read(LOOP.format(inside=words))
    after = ortscan.optimize(model, verify=False)
    assert ortscan.verify(model, after, level="full", time_limit=3).ok
    assert ort_run(after, FEEDS)[1].tolist() == [WORDS.tolist()] * 3
    assert not ortscan.verify(model, read(LOOP.format(inside="y = Gather <axis = 0> (t, i)")), time_limit=3).ok


def test_strings_that_nothing_else_holds_are_not_copied() -> None:
    model = read(LOOP.format(inside="y = Gather <axis = 0> (t, i)"))
    assert "Where" not in inside(ortscan.optimize(model, verify=False))
