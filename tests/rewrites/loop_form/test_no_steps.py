import numpy as np
import pytest

from rewrites.loop_form import no_steps
from tests.rewrites.harness import becomes, loop, stays

BODY = "h1 = Add (h, h) y = Tanh (h)"


@pytest.mark.parametrize("steps", [0, -3])
def test_a_loop_of_no_step_gives_what_it_was_given(steps: int) -> None:
    after, _ = becomes(no_steps, loop(BODY, steps=steps, given="float[2] s"))
    assert [node.op_type for node in after.graph.node] == ["Identity", "Identity"]


def test_a_condition_that_is_false_at_first_leaves_no_step() -> None:
    becomes(no_steps, loop(BODY, steps=5, condition="t", weights="bool t = {0}", given="float[2] s"))
    stays(no_steps, loop(BODY, steps=5, condition="t", weights="bool t = {1}", given="float[2] s"))
    stays(no_steps, loop(BODY, steps=5, condition="t", given="float[2] s, bool t"))


@pytest.mark.parametrize("steps", [1, 3, None])
def test_loops_that_may_have_a_step_stay(steps: int | None) -> None:
    stays(no_steps, loop(BODY, steps=steps, given="float[2] s"))


def test_stacks_of_unknown_sizes_stay_and_others_go() -> None:
    text = loop(
        BODY,
        steps=0,
        inputs="float[N] h",
        outputs="float[N] h1, float[N] y",
        given="float[K] s",
        results="float[K] z, float[J,I] ys",
    )
    stays(no_steps, text, "LOOP-EMPTY", check=False)
    becomes(no_steps, text.replace(", float[J,I] ys)", ")"), check=False, feeds={"s": np.ones(3, np.float32)})
