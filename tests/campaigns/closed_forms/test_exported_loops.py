"""The same recurrences as TensorFlow and JAX write them, in a Loop with a counter and a condition: they end in the same forms."""

import numpy as np
import pytest

import ortscan
from tests.campaigns.closed_forms.checking import has_loop
from tests.campaigns.closed_forms.families import FAMILIES, Sizes, exact, feeds_of
from tests.support.text import model_from_text, ort_run

STEPS, WIDTH = 600, 4
WEIGHTS = "float one = {1}, float half = {0.5}, float tenth = {0.1}, float fifth = {0.2}, float more = {1.6}, float less = {0.7}"
COUNTERS = "int64 zero = {0}, int64 next = {1}, int64 count = {600}, int64 most = {9223372036854775807}, bool yes = {1}"
READ = "x = Gather <axis = 0> (xs, k) a = Gather <axis = 0> (as, k) k1 = Add (k, next) c1 = Less (k1, count)"
ROW = f"float[{WIDTH}]"
NAMES = [name for name, family in FAMILIES.items() if "float" in family.kinds and family.opset == 18]


def tensorflow(body: str, states: int) -> str:
    """A while loop that collects its results in a TensorArray."""
    inner, after, finals = (", ".join(f"{ROW} {part}{i + 1}" for i in range(states)) for part in "snf")
    given = ", ".join(f"z{i + 1}" for i in range(states))
    return f"""g ({", ".join(f"{ROW} z{i + 1}" for i in range(states))}, float[{STEPS},{WIDTH}] xs, float[{STEPS},{WIDTH}] as)
        => ({finals}, float[{STEPS},{WIDTH}] ys) <{WEIGHTS}, {COUNTERS}> {{
        k9, {", ".join(f"f{i + 1}" for i in range(states))}, ys = Loop <body = b (int64 i, bool c, int64 k, {inner})
            => (bool c1, int64 k1, {after}, {ROW} y) {{ {READ} {body} }}> (most, yes, zero, {given}) }}"""


def jax(body: str, states: int) -> str:
    """A fori_loop that writes its results into a buffer."""
    inner, after, finals = (", ".join(f"{ROW} {part}{i + 1}" for i in range(states)) for part in "snf")
    given, stack = ", ".join(f"z{i + 1}" for i in range(states)), f"float[{STEPS},{WIDTH}]"
    write = "at = Reshape (k, place) row = Unsqueeze (y, first) w1 = ScatterND (w, at, row)"
    return f"""g ({", ".join(f"{ROW} z{i + 1}" for i in range(states))}, {stack} xs, {stack} as) => ({finals}, {stack} ys)
        <{WEIGHTS}, {COUNTERS}, int64[2] place = {{1, 1}}, int64[1] first = {{0}}, int64[2] shape = {{{STEPS}, {WIDTH}}}> {{
        empty = ConstantOfShape (shape)
        k9, {", ".join(f"f{i + 1}" for i in range(states))}, ys = Loop <body = b (int64 i, bool c, int64 k, {inner}, {stack} w)
            => (bool c1, int64 k1, {after}, {stack} w1) {{ {READ} {body} {write} }}> (most, yes, zero, {given}, empty) }}"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("written", [tensorflow, jax])
def test_the_loop_goes_and_the_numbers_stay(name: str, written) -> None:
    family, sizes = FAMILIES[name], Sizes(STEPS, WIDTH, "float")
    after = ortscan.optimize(model_from_text(written(family.body, family.states), 18), verify=False)
    assert not has_loop(after)
    feeds = feeds_of(sizes, family.starts[: family.states], 0)
    for mine, wanted in zip(ort_run(after, feeds), exact(family, feeds), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-3)
