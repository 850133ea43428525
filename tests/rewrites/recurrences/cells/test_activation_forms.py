"""Another form of an activation computes the same numbers; only some activations have one."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rewrites.ops.rnn.functions import Function
from rewrites.recurrences.cells.activation_forms import (
    ActivationForm,
    complement,
    merge_clips,
    multiple,
    normal_form,
    scaled_and_shifted,
)
from rewrites.recurrences.cells.linear_map import LinearMap
from rewrites.recurrences.cells.polynomial import Activation, Polynomial
from tests.rewrites.recurrences.cells.algebra import ACTIVATIONS, at

X = np.linspace(-4, 4, 65)


def applied(function: Function, x: np.ndarray) -> np.ndarray:
    return at(Activation(function, Polynomial(LinearMap.source("x", 1))), {"x": x[:, None]})[:, 0]


@pytest.mark.parametrize(
    ("rewrite", "factor", "added", "names"),
    [
        (normal_form, 1.0, 0.0, {function.name for function in ACTIVATIONS}),
        (complement, -1.0, 1.0, {"HardSigmoid", "Sigmoid"}),
        (lambda function: multiple(function, 3.0), 3.0, 0.0, {"Tanh"}),
        (lambda function: multiple(function, -2.0), -2.0, 0.0, {"Tanh"}),
        (lambda function: scaled_and_shifted(function, 0.5, 0.5), 0.5, 0.5, {"Clip", "Tanh"}),
        (lambda function: scaled_and_shifted(function, 2.0, -1.0), 2.0, -1.0, {"Sigmoid"}),
        (lambda function: scaled_and_shifted(function, 1.0, 0.0), 1.0, 0.0, set()),
    ],
)
def test_another_form_computes_the_same(
    rewrite: Callable[[Function], ActivationForm | None], factor: float, added: float, names: set[str]
) -> None:
    rewritten = set()
    for function in ACTIVATIONS:
        for clipped in (
            (function, replace(function, clip=0.5)) if function.name not in ("Clip", "Relu", "Softplus") else (function,)
        ):
            form = rewrite(clipped)
            if form is not None:
                rewritten.add(function.name)
                result = applied(form.function, form.factor * X + (form.added or 0.0))
                np.testing.assert_allclose(result, factor * applied(clipped, X) + added, atol=1e-12)
    assert rewritten == names


def test_a_clip_of_a_clip_is_one_clip() -> None:
    clips = [function for function in ACTIVATIONS if function.name in ("Clip", "Relu")]
    merged = [(outer, inner, merge_clips(outer, inner)) for outer in clips for inner in clips]
    assert sum(function is None for _, _, function in merged) < 3
    for outer, inner, function in merged:
        if function is not None:
            np.testing.assert_allclose(applied(function, X), applied(outer, applied(inner, X)))
    assert merge_clips(Function("Tanh"), clips[0]) is None
