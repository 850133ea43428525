"""Resize and Upsample in each step."""

import itertools

import pytest

from tests.rewrites.batching.harness import F16, F32, I64, Arg, Case, case, check, const, given, refusal, same, steps

SHAPES = {1: (5,), 2: (4, 5), 3: (3, 4, 5), 4: (2, 3, 4, 5), 5: (1, 2, 3, 4, 5)}
FACTORS = {1: [1.6], 2: [2.0, 0.6], 3: [1.0, 2.0, 0.6], 4: [1.0, 1.0, 2.0, 0.6], 5: [1.0, 1.0, 2.0, 2.0, 0.6]}
SIZES = {1: [8], 2: [8, 3], 3: [3, 8, 3], 4: [2, 3, 8, 3], 5: [1, 2, 6, 8, 3]}


def _picture(rank: int, named: bool = False) -> Arg:
    return steps(F32, *SHAPES[rank], dims=[f"D{axis}" for axis in range(rank)] if named else None)


def _resizes(attributes: str, ranks: tuple[int, ...], named: bool = False) -> list[Case]:
    cases = []
    for rank, kind in itertools.product(ranks, (const, given)):
        cases.append(case(f"y = Resize <{attributes}> (x, , s)", x=_picture(rank, named), s=kind(FACTORS[rank], F32)))
        cases.append(case(f"y = Resize <{attributes}> (x, , , z)", x=_picture(rank, named), z=kind(SIZES[rank], I64)))
    return cases


@pytest.mark.parametrize("opset", [13, 18, 19])
@pytest.mark.parametrize("named", [False, True], ids=["known", "symbolic"])
def test_pictures_of_all_steps_are_resized_together(opset: int, named: bool) -> None:
    cases = _resizes('mode="nearest"', (1, 2, 3, 4, 5), named)
    cases += _resizes('mode="nearest", nearest_mode="ceil", coordinate_transformation_mode="asymmetric"', (2, 4), named)
    cases += _resizes('mode="linear"', (2, 4), named) + _resizes('mode="cubic"', (2, 4), named)
    cases += _resizes('mode="linear", coordinate_transformation_mode="align_corners"', (4,), named)
    if opset >= 18:
        cases += _resizes('mode="linear", antialias=1', (4,), named)
    check(cases, opset, empty=False)


def test_scales_that_touch_the_batch_axis() -> None:
    args = {"x": _picture(4), "s": const([2.0, 1.0, 1.0, 1.0], F32)}
    check([case('y = Resize <mode="nearest"> (x, , s)', **args)], empty=False)


def test_axes_to_resize_may_be_chosen() -> None:
    half = const([0.5, 2.0], F32)
    cases = [
        case(f'y = Resize <mode="{mode}", axes=[2, 3]> (x, , s)', x=_picture(4), s=half) for mode in ("nearest", "linear", "cubic")
    ]
    cases.append(case('y = Resize <mode="nearest", axes=[-1, 0]> (x, , s)', x=_picture(2), s=half))
    policy = '"not_larger"'
    cases.append(case(f"y = Resize <keep_aspect_ratio_policy={policy}, axes=[2, 3]> (x, , , z)", x=_picture(4), z=const([7, 7])))
    check(cases, empty=False)


def test_regions_of_interest() -> None:
    mode = 'mode="linear", coordinate_transformation_mode="tf_crop_and_resize"'
    region = const([0, 0, 0.2, 0.1, 1, 1, 0.8, 0.9], F32)
    cases = [case(f"y = Resize <{mode}> (x, r, , z)", x=_picture(4), r=region, z=const([2, 3, 3, 3]))]
    flat = const([0.2, 0.1, 0.8, 0.9], F32)
    cases.append(case(f"y = Resize <{mode}> (x, r, s)", x=_picture(2), r=flat, s=const(FACTORS[2], F32)))
    check(cases, empty=False)


@pytest.mark.parametrize("opset", [10, 11])
def test_the_first_spellings(opset: int) -> None:
    text = "y = Resize (x, s)" if opset == 10 else "y = Resize (x, r, s)"
    args = [{"x": _picture(rank), "s": kind(FACTORS[rank], F32)} for rank in (2, 4) for kind in (const, given)]
    check([case(text, **one, **({} if opset == 10 else {"r": const([], F32)})) for one in args], opset, empty=False)


@pytest.mark.parametrize("opset", [8, 9])
def test_upsampling(opset: int) -> None:
    cases = []
    for mode, rank in [("nearest", 2), ("nearest", 3), ("nearest", 4), ("linear", 2), ("linear", 4)]:
        up = [1.0 if place < rank - 2 else 2.0 for place in range(rank)]
        if opset == 8:
            cases.append(case(f'y = Upsample <mode="{mode}", scales={up}> (x)', x=_picture(rank)))
        else:
            cases += [case(f'y = Upsample <mode="{mode}"> (x, s)', x=_picture(rank), s=kind(up, F32)) for kind in (const, given)]
    check(cases, opset, empty=False)


def test_what_decides_the_size_must_be_the_same_in_every_step() -> None:
    assert refusal(case("y = Resize (x, , s)", x=same(F32, 4), s=steps(F32, 1))) == "BATCHED-STRUCTURE"
    assert refusal(case("y = Resize (x, r, s)", x=steps(F16, 4), r=steps(F32, 2), s=const([2], F32))) == "BATCHED-STRUCTURE"
