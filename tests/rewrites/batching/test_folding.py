"""Operators with a batch axis of their own, into which the steps go."""

import itertools

import pytest

from tests.rewrites.batching.harness import F32, F64, I64, Arg, case, check, const, given, refusal, same, steps

PAIRS = [(steps, same), (same, steps), (steps, steps)]


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize("named", [False, True], ids=["known", "symbolic"])
def test_places_of_maxima_are_counted_in_each_step(opset: int, named: bool) -> None:
    forms = [
        "kernel_shape=[2, 2]",
        "kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]",
        "kernel_shape=[2, 2], storage_order=1",
    ]
    x = steps(F32, 2, 3, 5, 6, dims=["N", "C", "H", "W"] if named else None)
    check([case(f"y, i = MaxPool <{form}> (x)", x=x) for form in forms], opset)


def test_maxima_go_back_to_their_places() -> None:
    text = "y = MaxUnpool <kernel_shape=[2, 2], strides=[2, 2]> (x, i{})"
    cases = []
    for one, other in PAIRS:
        places = other(I64, 2, 1, 2, 2)
        places.data[...] = [[[[5, 7], [13, 15]]], [[[21, 23], [29, 31]]]]
        cases.append(case(text.format(""), x=one(F32, 2, 1, 2, 2), i=places))
        cases.append(case(text.format(", s"), x=one(F32, 2, 1, 2, 2), i=places, s=const([2, 1, 5, 5])))
    check(cases)
    sized = cases[1].args | {"s": given([2, 1, 5, 5], I64)}
    assert refusal(case(text.format(", s"), **sized)) == "SHAPE-UNKNOWN"
    unknown = case(text.format(""), x=steps(F32, 2, 1, 2, 2, dims=["N", 1, "H", "W"]), i=same(I64, 2, 1, 2, 2))
    assert refusal(unknown) == "SHAPE-UNKNOWN"


def test_columns_to_images() -> None:
    check([case("y = Col2Im (x, s, k)", x=steps(F32, 2, 8, 6), s=kind([3, 4], I64), k=const([2, 2])) for kind in (const, given)])
    assert refusal(case("y = Col2Im (x, s, k)", x=steps(F32, 2, 8, 6), s=steps(I64, 2), k=const([2, 2]))) == "BATCHED-WEIGHTS"


def test_deformed_convolutions() -> None:
    text = "y = DeformConv (x, w, o, b, m)"
    fixed = {"w": same(F32, 4, 3, 2, 2), "b": same(F32, 4)}
    cases = []
    for x, offsets in PAIRS:
        args = {"x": x(F32, 2, 3, 4, 4), "o": offsets(F32, 2, 8, 3, 3), **fixed}
        cases += [case(text, **args, m=kind(F32, 2, 4, 3, 3)) for kind in (steps, same)]
    check(cases, 19, empty=False)
    assert refusal(case(text, **cases[0].args | {"w": steps(F32, 4, 3, 2, 2)}), 19) == "BATCHED-WEIGHTS"


@pytest.mark.parametrize("named", [False, True], ids=["known", "symbolic"])
def test_grids_of_affine_maps(named: bool) -> None:
    cases = []
    for kind, corners in itertools.product((const, given), (0, 1)):
        for shape, size in [((2, 2, 3), [2, 1, 3, 4]), ((2, 3, 4), [2, 1, 2, 3, 4])]:
            maps = steps(F32, *shape, dims=["N", *shape[1:]] if named else None)
            cases.append(case(f"y = AffineGrid <align_corners={corners}> (x, s)", x=maps, s=kind(size, I64)))
    check(cases, 20)
    assert refusal(case("y = AffineGrid (x, s)", x=steps(F32, 2, 2, 3), s=steps(I64, 4)), 20) == "BATCHED-STRUCTURE"


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_caches_are_written_in_every_step(mode: str) -> None:
    text = f'y = TensorScatter <mode="{mode}", axis=-2> (c, u, i)'
    places = [given([0, 2], I64), given([[0, 1], [2, 0], [1, 1]], I64, batched=True)]
    pairs = itertools.product(PAIRS, places)
    check([case(text, c=one(F32, 2, 3, 5, 4), u=other(F32, 2, 3, 2, 4), i=place) for (one, other), place in pairs], 24)
    check([case("y = TensorScatter <axis=1> (c, u)", c=steps(F32, 2, 5, 4), u=same(F32, 2, 5, 4))], 24)


def test_spectra_of_signals() -> None:
    cases = []
    for one, size in [("", ()), (", n", (const(7),)), (", n", (given(3, I64),))]:
        args: dict[str, Arg] = {"n": size[0]} if size else {}
        cases += [case(f"y = DFT <axis={axis}> (x{one})", x=steps(F32, 2, 5, 3, 1), **args) for axis in (1, 2, -2)]
        cases.append(case(f"y = DFT <inverse=1> (x{one})", x=steps(F64, 2, 5, 2), **args))
        cases.append(case(f"y = DFT <onesided=1> (x{one})", x=steps(F32, 2, 5, 1), **args))
    check(cases, 17, empty=False)
    axes = [const(1), const(-2), given(2, I64), given(-3, I64)]
    cases = [case("y = DFT (x, , a)", x=steps(F32, 2, 5, 3, 2), a=axis) for axis in axes]
    check(
        [*cases, case("y = DFT (x)", x=steps(F32, 2, 5, 1)), case("y = DFT (x, n)", x=steps(F32, 2, 5, 1), n=const(4))],
        20,
        empty=False,
    )
    assert refusal(case("y = DFT (x, n)", x=steps(F32, 2, 5, 1), n=steps(I64))) == "BATCHED-STRUCTURE"


def test_frames_of_signals() -> None:
    cases = []
    for onesided, window in itertools.product(("", "<onesided=0>", "<onesided=1>"), (None, same(F32, 8))):
        args = {} if window is None else {"w": window}
        text = f"y = STFT {onesided} (x, f{', w' if args else ', , l'})"
        more = {} if args else {"l": const(8)}
        cases.append(case(text, x=steps(F32, 2, 24, 1), f=const(4), **args, **more))
    check(cases, 17, empty=False)
    windows = case("y = STFT (x, f, w)", x=steps(F32, 2, 24, 1), f=const(4), w=steps(F32, 8))
    assert refusal(windows, 17) == "BATCHED-WEIGHTS"


def test_documents() -> None:
    attributes = 'mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0, ngram_counts=[0, 2], ngram_indexes=[0, 1, 2]'
    text = f"y = TfIdfVectorizer <{attributes}, pool_int64s=[1, 2, 1, 2]> (x)"
    check([case(text, x=steps(I64, *shape, low=0, high=4)) for shape in ((6,), (2, 6))], 9, empty=False)


def test_sequences_are_reversed_in_every_step() -> None:
    cases = []
    for one, time in itertools.product(PAIRS, (0, 1)):
        lengths = one[1](I64, 4, low=1, high=4)
        text = f"y = ReverseSequence <time_axis={time}, batch_axis={1 - time}> (x, l)"
        cases.append(case(text, x=one[0](F32, *((4, 4, 2) if time else (4, 4))), l=lengths))
    check(cases, 10)


@pytest.mark.parametrize("opset", [10, 16])
def test_regions_of_pictures(opset: int) -> None:
    regions = [[0, 0, 3, 3], [1, 1, 4, 2], [0, 2, 2, 4]]
    numbers = given([1, 0, 1], I64)
    text = "y = RoiAlign <output_height=2, output_width=2, spatial_scale=1.0, sampling_ratio=2> (x, r, i)"
    cases = [case(text, x=one(F32, 2, 3, 5, 5), r=given(regions, F32), i=numbers) for one in (steps,)]
    cases.append(case(text, x=same(F32, 2, 3, 5, 5), r=given([regions] * 3, F32, batched=True), i=numbers))
    cases.append(case(text, x=same(F32, 2, 3, 5, 5), r=given(regions, F32), i=given([[0, 1, 1]] * 3, I64, batched=True)))
    check(cases, opset, empty=False)


def test_pooled_regions_of_pictures() -> None:
    regions = [[1, 0, 0, 3, 3], [0, 1, 1, 4, 2], [1, 0, 2, 2, 4]]
    other = [[0, 1, 0, 3, 4], [1, 1, 0, 2, 2], [0, 0, 0, 4, 4]]
    text = "y = MaxRoiPool <pooled_shape=[2, 2], spatial_scale=1.0> (x, r)"
    cases = [case(text, x=one(F32, 2, 3, 5, 5), r=given([regions, other, regions], F32, batched=True)) for one in (steps, same)]
    cases.append(case(text, x=steps(F32, 2, 3, 5, 5), r=given(regions, F32)))
    check(cases, empty=False)


def test_determinants_and_matches() -> None:
    check([case("y = Det (x)", x=steps(F32, *shape)) for shape in ((2, 2), (4, 3, 3))], 11)
    check([case('y = RegexFullMatch <pattern="a.*"> (x)', x=steps("str", 2, 3))], 20)
