"""Trip counts and conditions that are computed from constants are constants."""

import pytest

from rewrites.graph.values import const_scalar
from rewrites.loops import LoopView, view
from rewrites.registry import RULES
from tests.rewrites.apply import apply, one_loop, prepared, read
from tests.rewrites.fission.harness import data

WEIGHTS = "int64 zero = {0}, int64 one = {1}, int64 two = {2}"
BODY = "b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1) { c1 = Identity (c) h1 = Tanh (h) }"


def text(before: str, condition: str = "", given: str = "float[5,2] x, float[2] s") -> str:
    return f"g ({given}) => (float[2] z) <{WEIGHTS}> {{ {before} z = Loop <body = {BODY}> (n, {condition}, s) }}"


def found(written: str) -> LoopView:
    loop = view(one_loop(prepared(written)), 18)
    assert isinstance(loop, LoopView)
    return loop


@pytest.mark.parametrize(
    "before",
    [
        "k = Shape (x) n = Gather (k, zero)",
        "k = Shape <start = 0, end = 1> (x) n = Squeeze (k)",
        "k = Size (x) n = Div (k, two)",
        "k = Shape (x) d = Gather (k, zero) f = Cast <to = 1> (d) e = Ceil (f) n = Cast <to = 7> (e)",
    ],
)
def test_a_count_made_from_a_known_shape_is_a_number(before: str) -> None:
    assert found(text(before)).steps == 5
    dynamic = found(text(before, given="float[B,2] x, float[2] s"))
    assert dynamic.steps is None


def test_a_condition_made_from_constants_is_one() -> None:
    loop = found(text("k = Shape (x) n = Gather (k, zero) go = Less (zero, n)", "go"))
    assert const_scalar(loop.condition) is True
    assert loop.steps == 5


def test_a_count_that_is_read_elsewhere_too_stays_there() -> None:
    written = text("k = Shape (x) n = Gather (k, zero)").replace("=> (float[2] z)", "=> (float[2] z, int64 n)")
    after, _ = apply(written, RULES, feeds=data(read(written)))
    assert [node.op_type for node in after.graph.node if "n" in node.output] == ["Gather"]


def test_a_loop_in_a_branch_or_body_knows_its_count_too() -> None:
    inner = f"k = Shape (x) n = Gather (k, zero) u = Loop <body = {BODY}> (n, , s)"
    branch = f"If (t) <then_branch = p () => (float[2] u) {{ {inner} }}, else_branch = q () => (float[2] v) {{ v = Neg (s) }}>"
    assert found(f"g (float[5,2] x, float[2] s, bool t) => (float[2] z) <{WEIGHTS}> {{ z = {branch} }}").steps == 5


@pytest.mark.parametrize("before", ["n = Div (two, zero)", "m = Neg (one) n = Div (two, m)", "n = Mod (two, zero)"])
def test_what_would_end_the_process_is_not_tried(before: str) -> None:
    assert found(text(before)).steps is None


def test_what_is_made_by_many_nodes_is_left() -> None:
    chain = "n0 = Size (x) " + " ".join(f"n{i + 1} = Neg (n{i})" for i in range(99)) + " n = Neg (n99)"
    assert found(text(chain)).steps is None
