"""States that are found to count against what they are when the Loop runs."""

import numpy as np
import pytest

from rewrites.analysis.induction.affine_expression import EXACT, SLOPE_IN_FLOATS, STEP, counts_exactly
from rewrites.analysis.induction.induction_variables import counters
from rewrites.loops import view
from tests.rewrites.apply import one_loop, prepared, read
from tests.support.runtime import ort_run

NEXT = {
    "e1 = Add (e, two)": True,
    "e1 = Sub (e, two)": True,
    "e1 = Identity (e)": True,
    "e2 = Add (two, e) e1 = Sub (e2, three)": True,
    "e2 = Sub (two, e) e1 = Neg (e2)": True,
    "e1 = Sub (two, e)": False,
    "e1 = Add (e, e)": False,
    "e1 = Add (e, i)": False,
    "e1 = Add (e, other)": False,
    "e1 = Mul (e, two)": False,
    "e2 = Mul (i, two) e1 = Add (e2, five)": "3",
    "e1 = Add (i, one)": "0",
    "e1 = Identity (i)": "-1",
    "e2 = Neg (i) e1 = Add (e2, two)": "3",
    "e1 = Div (e, two)": False,
    "e2 = Cast <to = 6> (e) e3 = Cast <to = 7> (e2) e1 = Add (e3, two)": True,
    "e2 = Cast <to = 1> (e) e3 = Cast <to = 7> (e2) e1 = Add (e3, two)": True,
    "e2 = Max (e, two) e1 = Add (e2, one)": False,
}


@pytest.mark.parametrize("start", [-1, 0, 3])
@pytest.mark.parametrize("after", NEXT)
def test_a_state_counts_where_it_is_its_start_and_a_multiple_of_the_step(after: str, start: int) -> None:
    text = f"""g () => (int64 ee, int64[5] es) <int64 m = {{5}}, int64 s = {{{start}}}, int64 one = {{1}}, int64 two = {{2}}, int64 three = {{3}},
        int64 five = {{5}}> {{ oe, ee, es = Loop <body = body (int64 i, bool go, int64 other, int64 e) => (bool go1, int64 o1, int64 e1, int64 y) {{
            go1 = Identity (go) o1 = Mul (other, two) y = Identity (e) {after} }}> (m, , two, s) }}"""
    ctx = prepared(text, check=False)
    found = {counter.state.inner.name: counter for counter in counters(view(one_loop(ctx), ctx.opset), ctx.opset)}
    assert "other" not in found
    assert ("e" in found) == (NEXT[after] == str(start) if isinstance(NEXT[after], str) else NEXT[after])
    if "e" in found:
        value = found["e"].value
        assert not value.terms.keys() - {STEP}
        wanted = [int(value.const.item()) + value.factor(STEP) * step for step in range(5)]
        assert ort_run(read(text, check=False), {})[1].tolist() == wanted
        assert (value.exact_to is not None) == ("to = 1" in after)


@pytest.mark.parametrize("kind", EXACT)
def test_floats_hold_what_is_followed_in_them_for_as_many_steps_as_is_said(kind: object) -> None:
    exact = EXACT[kind]
    number = {1 << 11: np.float16, 1 << 24: np.float32, 1 << 53: np.float64}[exact]
    steps = max(step for step in (1, 10, 90, 10**6 - 9, 10**14) if counts_exactly(step, exact))
    greatest = SLOPE_IN_FLOATS * (steps + 1) + (exact >> 2)
    assert all(int(number(greatest - back)) == greatest - back for back in range(100))
    assert not counts_exactly(exact, exact)
