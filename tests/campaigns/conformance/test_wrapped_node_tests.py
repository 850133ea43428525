"""A sample of the wrapped node tests; ``python -m tests.campaigns conformance`` tries all of them."""

import random

import numpy as np
import pytest

from ortscan.report.codes import CODES
from tests.campaigns.conformance.node_tests import SLOW_MODULES, NodeTest, node_tests
from tests.campaigns.conformance.runner import Plan, plans, run
from tests.campaigns.conformance.table import counts, share_gone, table
from tests.campaigns.conformance.try_out import Outcome
from tests.campaigns.conformance.wrapping import STEPS, wrap

SAMPLE = 120


@pytest.fixture(scope="module")
def tests() -> tuple[NodeTest, ...]:
    return node_tests(SLOW_MODULES)


@pytest.fixture(scope="module")
def outcomes(tests: tuple[NodeTest, ...]) -> list[Outcome]:
    return list(run(random.Random(1).sample(plans(tests), SAMPLE)))


@pytest.mark.long
def test_nothing_is_wrong_invalid_or_crashed(outcomes: list[Outcome]) -> None:
    assert [outcome for outcome in outcomes if outcome.status in ("wrong", "invalid", "crash")] == []


@pytest.mark.long
def test_nearly_all_leave_the_loop(outcomes: list[Outcome]) -> None:
    assert counts(outcomes)["gone"] > SAMPLE / 2
    assert share_gone(outcomes) >= 0.92


@pytest.mark.long
def test_what_is_left_says_why(outcomes: list[Outcome]) -> None:
    codes = {outcome.code for outcome in outcomes if outcome.status == "left"}
    assert codes <= set(CODES) - {"NO-BATCHING-RULE", "MALFORMED"}


def named(tests: tuple[NodeTest, ...], name: str) -> NodeTest:
    return next(test for test in tests if test.name == name)


def test_steps_differ_and_the_first_is_the_test_itself(tests: tuple[NodeTest, ...]) -> None:
    test = named(tests, "test_softmax_axis_1")
    wrapped = wrap(test, "alone", constants=True, first_only=False)
    assert wrapped is not None
    assert wrapped.scanned == ("x",)
    (stack,) = wrapped.feeds.values()
    axis = next(place for place in range(stack.ndim) if stack.shape[place] == STEPS and stack.ndim == test.inputs["x"].ndim + 1)
    first, second = np.take(stack, 0, axis), np.take(stack, 1, axis)
    assert first.shape == second.shape
    assert not np.array_equal(first, second)


def test_a_process_that_dies_is_an_outcome_and_the_rest_goes_on(
    tests: tuple[NodeTest, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    from tests.campaigns.conformance import runner

    def deadly(wrapped: object, opset: str, ran: object) -> Outcome:
        if opset == "keep":
            os._exit(3)
        return Outcome("fine", "Abs", "gone")

    monkeypatch.setattr(runner, "try_out", deadly)
    test = named(tests, "test_abs")
    todo = [Plan(test, "alone", True, True, opset) for opset in ("auto", "keep", "auto")]
    assert [outcome.status for outcome in run(todo)] == ["gone", "not run", "gone"]


def test_the_table_counts_by_operator() -> None:
    made = [Outcome("a", "Abs", "gone"), Outcome("b", "Abs", "left", "RANDOM"), Outcome("c", "Neg", "not run")]
    text = table(made)
    assert "| Abs | 1 of 2 | `RANDOM` 1 |" in text
    assert "Neg" not in text
