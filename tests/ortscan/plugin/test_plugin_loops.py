"""Loops of unmodified models in plain sessions: every form of Loop has the same results as on onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.plugin_sessions import Array, both, taken
from tests.support.text import model_from_text

ROWS = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 2, 4)
STATE = np.linspace(0.5, 2, 8, dtype=np.float32).reshape(2, 4)
FEEDS: dict[str, Array] = {"h": STATE, "xs": ROWS, "m": np.array(5), "c": np.array(True), "w": STATE[0]}

LOOPS = {
    "a condition": "hT = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1) { s1 = Mul (s, w) t = ReduceSum <keepdims = 0> (s1) c1 = Greater (t, one) }> (m, c, h)",
    "a condition alone": 'hT = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1) { s1 = Mul (s, half) t = ReduceSum <keepdims = 0> (s1) c1 = Greater (t, one) }> ("", c, h)',
    "nothing but a condition": 'hT = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1) { s1 = Mul (s, half) t = ReduceSum <keepdims = 0> (s1) c1 = Greater (t, one) }> ("", "", h)',
    "so many steps": 'hT, ys = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1, float[2,4] y) { c1 = Identity (c0) s1 = Tanh (s) y = Neg (s1) }> (m, "", h)',
    "a number of the step": 'hT = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1) { c1 = Identity (c0) f = Cast <to = 1> (i) s1 = Sub (f, s) }> (m, "", h)',
    "rows by the number of the step": 'hT, ys = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1, float[2,4] y) { c1 = Identity (c0) x = Gather <axis = 0> (xs, i) a = Tanh (s) s1 = Add (a, x) y = Neg (s1) }> (five, "", h)',
    "rows, as many as an input says": 'hT, ys = Loop <body = b (int64 i, bool c0, float[2,4] s) => (bool c1, float[2,4] s1, float[2,4] y) { c1 = Identity (c0) x = Gather <axis = 0> (xs, i) a = Tanh (s) s1 = Add (a, x) y = Neg (s1) }> (m, "", h)',
    "a state that stays": 'hT, wT, ys = Loop <body = b (int64 i, bool c0, float[2,4] s, float[4] v) => (bool c1, float[2,4] s1, float[4] v1, float[2,4] y) { c1 = Identity (c0) x = Gather <axis = 0> (xs, i) a = Mul (s, v) s1 = Add (a, x) v1 = Identity (v) y = Neg (s1) }> (five, "", h, w)',
}


@pytest.mark.parametrize("what", LOOPS)
def test_a_loop_gives_the_same_bits(what: str, tmp_path: Path) -> None:
    inside = LOOPS[what]
    declared = {"h": "float[2,4] h", "xs": "float[5,2,4] xs", "m": "int64 m", "c": "bool c", "w": "float[4] w"}
    read = [name for name in declared if f", {name}" in inside or f"({name}" in inside]
    results = {"hT": "float[2,4] hT", "wT": "float[4] wT", "ys": "float[N,2,4] ys"}
    given = [each for name, each in results.items() if name in inside.split(" = Loop")[0]]
    text = f"g ({', '.join(declared[name] for name in read)}) => ({', '.join(given)}) <float one = {{1}}, float half = {{0.5}}, int64 five = {{5}}> {{ {inside} }}"
    model, feeds = model_from_text(text, 18), {name: FEEDS[name] for name in read}
    for steps in (5, 1, 0) if "m" in feeds else (5,):
        plain, asked = both(model, feeds | ({"m": np.array(steps)} if "m" in feeds else {}))
        for left, right in zip(asked, plain, strict=True):
            np.testing.assert_array_equal(left, right, strict=True)
    assert taken(model, feeds, tmp_path) == 1
