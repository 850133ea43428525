"""Least values that are proven, against the least over all steps and sizes there are."""

import itertools
import random

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.analysis.induction.affine_expression import STEP, AffineExpression, Dim, Symbol, at_least, surely_equal

B, T, M = Dim("B", ir.Value(name="x"), 0), Dim("T", ir.Value(name="x"), 1), ir.Value(name="m")
SIZES = [dict(zip((B, T, M), numbers, strict=True)) for numbers in itertools.product(range(4), range(7), range(-3, 6))]


def drawn(rng: random.Random, symbols: list[Symbol], shape: tuple[int, ...] = ()) -> AffineExpression:
    total = AffineExpression.of(np.array([rng.randint(-4, 4) for _ in range(int(np.prod(shape)))]).reshape(shape))
    for symbol in rng.sample(symbols, rng.choice([0, 1, 1, 2])):
        total = total + AffineExpression.symbol(symbol) * AffineExpression.of(rng.choice([-2, -1, 1, 1, 2]))
    return total


def numbers_of(expression: AffineExpression, sizes: dict[Symbol, int], step: int) -> np.ndarray:
    total = expression.const
    for symbol, factors in expression.terms.items():
        total = total + factors * {**sizes, STEP: step}[symbol]
    return np.asarray(total)


def least(value: AffineExpression, steps: AffineExpression, sizes: list[dict[Symbol, int]]) -> int | None:
    """The least element over all steps of loops of all sizes, None without any step."""
    found = [numbers_of(value, one, step).min() for one in sizes for step in range(max(0, int(numbers_of(steps, one, 0).item())))]
    return min(found) if found else None


def test_what_is_proven_holds_in_every_step_of_every_size() -> None:
    proven = 0
    for seed in range(800):
        rng = random.Random(seed)
        steps = drawn(rng, [B, T, M])
        value = drawn(rng, [STEP, STEP, B, T, M], rng.choice([(), (2,), (1, 1)]))
        value = value + steps.reshaped(()) if rng.random() < 0.4 else value
        bound = rng.randint(-4, 2)
        if at_least(value, bound, steps):
            lowest = least(value, steps, SIZES)
            proven += lowest is not None
            assert lowest is None or lowest >= bound
    assert proven > 100


@pytest.mark.parametrize("slope", [-2, -1, 0, 1, 3])
def test_numbers_alone_are_decided_exactly(slope: int) -> None:
    for start, count, bound in itertools.product(range(-3, 4), range(1, 5), range(-6, 7)):
        value = AffineExpression.symbol(STEP) * AffineExpression.of(slope) + AffineExpression.of(start)
        assert at_least(value, bound, AffineExpression.of(count)) == all(start + slope * step >= bound for step in range(count))


def test_without_a_trip_count_only_what_never_falls_is_proven() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        value, bound = drawn(rng, [STEP, B, T, M]), rng.randint(-4, 2)
        if at_least(value, bound):
            assert M not in value.terms
            assert min(numbers_of(value, one, step).min() for one in SIZES for step in range(9)) >= bound


def test_expressions_are_surely_equal_just_where_they_agree_everywhere() -> None:
    same = 0
    for seed in range(400):
        rng = random.Random(seed)
        one, other = drawn(rng, [STEP, T]), drawn(rng, [STEP, T])
        everywhere = all(
            (numbers_of(one, sizes, step) == numbers_of(other, sizes, step)).all() for sizes in SIZES for step in range(3)
        )
        same += everywhere
        assert surely_equal(one, other) == everywhere
    assert same
