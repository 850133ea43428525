"""Operators that ONNX defines by others."""

import itertools

import numpy as np
import pytest

from tests.rewrites.batching.harness import F32, I64, case, check, const, given, refusal, same, steps

REDUCTIONS = ("none", "mean", "sum")


@pytest.mark.parametrize("operator", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("opset", [12, 22])
def test_losses(operator: str, opset: int) -> None:
    cases = []
    for shape, (x, labels) in itertools.product([(4, 3), (4, 3, 2)], [(steps, same), (same, steps), (steps, steps)]):
        target = labels(I64, 4, *shape[2:], low=0, high=3)
        for reduction in REDUCTIONS:
            args = {"x": x(F32, *shape), "t": target}
            cases.append(case(f'y = {operator} <reduction="{reduction}"> (x, t)', **args))
            weighted = f'{operator} <reduction="{reduction}", ignore_index=1> (x, t, w)'
            cases += [case(f"y = {weighted}", **args, w=kind(F32, 3)) for kind in (steps, same)]
    for one in cases:
        if "w" in one.args:
            one.args["w"].data[...] = np.abs(one.args["w"].data) + 0.5
    check(cases, opset, empty=False)


def test_losses_with_probabilities() -> None:
    check([case("y, p = SoftmaxCrossEntropyLoss (x, t)", x=steps(F32, 4, 3), t=steps(I64, 4, low=0, high=3))], 13, empty=False)


def test_cropping_and_padding_to_a_size() -> None:
    cases = [case("y = CenterCropPad (x, s)", x=steps(F32, 5, 4), s=kind([3, 6], I64)) for kind in (const, given)]
    cases.append(case("y = CenterCropPad <axes=[1]> (x, s)", x=steps(F32, 5, 4, 2), s=const([6])))
    check(cases, 18, empty=False)
    sizes = case("y = CenterCropPad (x, s)", x=same(F32, 5), s=steps(I64, 1))
    assert refusal(sizes, because_of="Pad") == "BATCHED-STRUCTURE"
