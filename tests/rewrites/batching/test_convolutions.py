"""Convolutions with weights of each step, and channels normalised with parameters of each step."""

import itertools

import pytest

from tests.rewrites.batching.harness import F16, F32, U8, Case, case, check, const, refusal, same, steps

PAIRS = [(steps, steps), (same, steps), (steps, same)]
FORMS = [("", 3, 3), ("<group=3>", 3, 1), ("<pads=[1, 1, 0, 0], strides=[2, 1]>", 3, 3), ("<dilations=[2, 1]>", 3, 3)]


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_weights_of_each_step_are_groups_of_channels(operator: str) -> None:
    cases: list[Case] = []
    for (one, other), (form, channels, own) in itertools.product(PAIRS, FORMS):
        groups = channels // own
        weights = (6, own, 2, 2) if operator == "Conv" else (channels, 6 // groups, 2, 2)
        args = {"x": one(F32, 2, channels, 4, 5), "w": other(F32, *weights)}
        cases.append(case(f"y = {operator} {form} (x, w)", **args))
        cases += [case(f"y = {operator} {form} (x, w, b)", **args, b=bias(F32, 6)) for bias in (steps, same)]
    check([one for one in cases if not _needs_steps(one)])
    grouped = [one for one in cases if _needs_steps(one)]
    for one in grouped[:3]:
        assert refusal(one) == "BATCHED-WEIGHTS"
    check(grouped, known_steps=True)


def _needs_steps(one: Case) -> bool:
    return one.args["w"].batched and (one.args["x"].batched or "group" in one.text)


def test_a_bias_of_each_step_is_added_afterwards() -> None:
    cases = [case("y = Conv (x, w, b)", x=one(F32, 2, 3, 5), w=same(F32, 4, 3, 2), b=steps(F32, 4)) for one in (steps, same)]
    check(cases)
    narrow = case("y = Conv (x, w, b)", x=steps(F16, 2, 3, 5), w=same(F16, 4, 3, 2), b=steps(F16, 4))
    assert refusal(narrow) == "PRECISION"


def test_integer_convolutions_with_weights_of_each_step() -> None:
    zero = const(3, U8)
    cases = [
        case("y = ConvInteger (x, w, z)", x=one(U8, 2, 3, 4, 4), w=other(U8, 5, 3, 2, 2), z=zero)
        for one, other in PAIRS
        if one is not other
    ]
    check(cases)
    both = case("y = ConvInteger (x, w)", x=steps(U8, 2, 3, 4, 4), w=steps(U8, 5, 3, 2, 2))
    check([both], known_steps=True)
    assert (
        refusal(case("y = ConvInteger (x, w, z)", x=steps(U8, 1, 3, 4, 4), w=same(U8, 5, 3, 2, 2), z=steps(U8)))
        == "BATCHED-WEIGHTS"
    )
    text = "y = QLinearConv (x, s, z, w, s, z, s, z)"
    one = case(text, x=steps(U8, 1, 3, 4, 4), w=steps(U8, 5, 3, 2, 2), s=const(0.05, F32), z=zero)
    assert refusal(one) == "BATCHED-WEIGHTS"


@pytest.mark.parametrize("dims", [None, ["N", "C", "W"]], ids=["known", "symbolic"])
def test_parameters_of_each_step_are_those_of_more_channels(dims: list[int | str] | None) -> None:
    names = None if dims is None else ["C"]
    cases = []
    for x, scale, bias in [(steps, steps, same), (same, steps, steps), (steps, same, steps)]:
        args = {"x": x(F32, 2, 3, 4, dims=dims), "s": scale(F32, 3, dims=names), "b": bias(F32, 3, dims=names)}
        cases.append(case("y = InstanceNormalization (x, s, b)", **args))
        more = {"m": same(F32, 3, dims=names), "v": steps(F32, 3, dims=names)}
        more["v"].data[...] = abs(more["v"].data) + 1
        cases.append(case("y = BatchNormalization (x, s, b, m, v)", **args, **more))
    check(cases)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_normalization_with_scales_of_each_step(opset: int) -> None:
    count = 3 if opset < 21 else 6
    text = "y = GroupNormalization <num_groups=3> (x, s, b)"
    check([case(text, x=one(F32, 2, 6, 4), s=steps(F32, count), b=same(F32, count)) for one in (steps, same)], opset, empty=False)


@pytest.mark.parametrize("opset", [9, 13])
def test_mean_and_variance_normalization(opset: int) -> None:
    cases = [
        case(f"y = MeanVarianceNormalization {axes} (x)", x=steps(F32, 2, 3, 4, 5, dims=dims))
        for axes in ("", "<axes=[0, 2, 3]>", "<axes=[0, 1, 2, 3]>")
        for dims in (None, ["N", "C", "H", "W"])
    ]
    check(cases, opset, empty=False)
    assert refusal(case("y = MeanVarianceNormalization <axes=[0, 2]> (x)", x=steps(F32, 2, 3, 4))) == "NO-BATCHING-RULE"
