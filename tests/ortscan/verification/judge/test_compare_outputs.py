"""The results of a stack without steps are compared once its sizes are declared; a run that decides gets its time."""

import onnx
import pytest

import ortscan
from ortscan.running.budget import Budget
from ortscan.verification.judge.compare_outputs import RunLimit
from tests.support.text import model_from_text

STACKED = """<ir_version: 9, opset_import: ["": 17]> g (int64 m, float[2] x) => (float[N] y) {
    yes = Constant <value = bool {1}> ()
    z, ys = Loop (m, yes, x) <body = b (int64 i, bool c, float[?] s) => (bool c1, float[?] s1, float[?] v) {
        c1 = Identity (c) s1 = Tanh (s) v = Identity (s1) }>
    y = ReduceMean <axes = [0], keepdims = 0> (ys) }"""
TOLD = """<ir_version: 9, opset_import: ["": 17]> g (int64 m, float[2] x) => (float[N] y) <float[WIDTH] none = {NUMBERS}> {
    yes = Constant <value = bool {1}> () zero = Constant <value_int = 0> () some = Less (zero, m)
    y = If (some) <then_branch = then () => (float[2] a) {
        z, ys = Loop (m, yes, x) <body = b (int64 i, bool c, float[2] s) => (bool c1, float[2] s1, float[2] v) {
            c1 = Identity (c) s1 = Tanh (s) v = Identity (s1) }>
        a = ReduceMean <axes = [0], keepdims = 0> (ys) },
      else_branch = else () => (float[WIDTH] e) { e = Identity (none) }> }"""


def told(*numbers: str) -> onnx.ModelProto:
    """Return a model that computes the same as the original if there are steps, else ``numbers``."""
    return model_from_text(TOLD.replace("WIDTH", str(len(numbers))).replace("NUMBERS", ", ".join(numbers)))


def test_a_model_that_knows_the_sizes_is_no_other_model() -> None:
    outcome = ortscan.verify(model_from_text(STACKED), told("0", "0"))
    assert outcome.ok, outcome.summary()
    assert "guesses" in outcome.summary()


def test_a_model_is_optimised_that_makes_a_mean_of_what_is_stacked() -> None:
    after = ortscan.optimize(model_from_text(STACKED))
    assert ortscan.verify(model_from_text(STACKED), after).ok


@pytest.mark.long
@pytest.mark.parametrize("numbers", [("0",), ("0", "0", "0"), ("1", "1")])
def test_a_model_that_gives_anything_else_without_a_step_is_another(numbers: tuple[str, ...]) -> None:
    assert not ortscan.verify(model_from_text(STACKED), told(*numbers)).ok


def test_a_run_that_decides_about_a_difference_gets_time_even_if_none_is_left() -> None:
    limit = RunLimit(Budget(0.0, 1 << 20), patience=1.0, slowest=0.001)
    assert limit.seconds() < 1 < limit.deciding_seconds()
