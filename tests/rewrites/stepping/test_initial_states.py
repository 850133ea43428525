"""States start from inputs, from a number or from an array."""

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.base.errors import OptionError
from rewrites.stepping.step_roles import RoleNames, read_roles
from tests.rewrites.stepping.test_whole_model import whole
from tests.support.text import assert_text_equal, parsed

STEP = "g (float[B,2] h, float[B,2] x) => (float[B,2] h1) { h1 = Add (h, x) }"
SCAN = "h1 = Scan <num_scan_inputs = 1, body = b (float[?,2] h, float[?,2] x) => (float[?,2] h1) { h1 = Add (h, x) }>"


def test_a_number_fills_a_state_whose_sizes_follow_from_an_input() -> None:
    expected = f"""g (float[steps,B,2] x) => (float[B,2] h1) <float z = {{0.5}}, int64[1] two = {{2}}> {{
        s = Shape <start = 1, end = 2> (x) t = Concat <axis = 0> (s, two) h = Expand (z, t) {SCAN} (h, x) }}"""
    assert_text_equal(whole(STEP, states={"h": "h1"}, scan=["x"], initial={"h": 0.5}), expected)


def test_the_axis_of_the_steps_is_not_counted_before_it() -> None:
    expected = f"""g (float[B,steps,2] x) => (float[B,2] h1) <float z = {{0}}, int64[1] two = {{2}}> {{
        s = Shape <start = 0, end = 1> (x) t = Concat <axis = 0> (s, two) h = Expand (z, t)
        r = Transpose <perm = [1, 0, 2]> (x) {SCAN} (h, r) }}"""
    assert_text_equal(whole(STEP, states={"h": "h1"}, scan={"x": 1}, initial={"h": 0}), expected)


@pytest.mark.parametrize("zero", [0, np.int64(0), np.float32(0)])
def test_known_sizes_give_a_constant(zero: Any) -> None:
    fixed = STEP.replace("B", "1")
    expected = f"""g (float[steps,1,2] x) => (float[1,2] h1) <float[1,2] h = {{0, 0}}> {{ {SCAN.replace("?", "1")} (h, x) }}"""
    assert_text_equal(whole(fixed, states={"h": "h1"}, scan=["x"], initial={"h": zero}), expected)


def test_an_array_is_a_constant() -> None:
    expected = f"g (float[steps,B,2] x) => (float[B,2] h1) <float[1,2] h = {{1, 2}}> {{ {SCAN} (h, x) }}"
    array = np.array([[1, 2]], np.float32)
    assert_text_equal(whole(STEP, states={"h": "h1"}, scan=["x"], initial={"h": array}), expected)


def test_an_axis_that_grows_starts_empty() -> None:
    step = "g (float[B,P,2] c, float[B,1,2] x) => (float[B,Q,2] c1) { c1 = Concat <axis = 1> (c, x) }"
    roles = read_roles(ir.from_proto(parsed(step)), RoleNames({"c": "c1"}, ["x"], initial={"c": 0}))
    assert getattr(roles.initial["c"], "sizes", None) == (("x", 1), 0, 2)


@pytest.mark.parametrize(
    ("initial", "message"),
    [
        ([], "initial must be a dict of states to numbers or arrays, such as {'h_in': 0}, not []"),
        ({"x": 0}, "initial: 'x' is no state; the states are 'h'"),
        ({"h": np.zeros((1, 2))}, "initial: the array for 'h' must have the type float32, not float64"),
        ({"h": np.zeros((1, 3), np.float32)}, "initial: the array for 'h' has the shape [1, 3], but the state has ['B', 2]"),
        ({"h": np.zeros(2, np.float32)}, "initial: the array for 'h' has the shape [2], but the state has ['B', 2]"),
        ({"h": "a"}, "initial: 'a' for 'h' is no number or array of numbers"),
        ({"h": object()}, "is no number or array of numbers"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(initial: Any, message: str) -> None:
    with pytest.raises(OptionError) as raised:
        read_roles(ir.from_proto(parsed(STEP)), RoleNames({"h": "h1"}, ["x"], initial=initial))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("g (int64[2] h, int64 x) => (int64[2] h1) { h1 = Add (h, x) }", "initial: 0.5 for 'h' is no number of the type int64"),
        (
            "g (float[B] h, float x) => (float[B] h1) { h1 = Add (h, x) }",
            "initial: the size 'B' at axis 0 of the state 'h' follows from no other input",
        ),
        ("g (float[?] h, float x) => (float[2] h1) { h1 = Identity (h) }", None),
        (
            "g (float[] h, float x) => (float[] h1) { h1 = Add (h, x) }",
            "initial: the rank of the state 'h' is unknown; start it from an input",
        ),
        (
            "g (seq(float) h, float x) => (seq(float) h1) { h1 = Identity (h) }",
            "initial: the state 'h' is no tensor, so it must start from an input",
        ),
    ],
)
def test_a_number_needs_a_state_whose_sizes_are_known(step: str, message: str | None) -> None:
    def read() -> None:
        read_roles(ir.from_proto(parsed(step)), RoleNames({"h": "h1"}, ["x"], initial={"h": 0.5}))

    if message is None:
        return read()
    with pytest.raises(OptionError) as raised:
        read()
    assert message in str(raised.value)
