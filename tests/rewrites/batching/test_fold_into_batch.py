"""Operators with a batch axis of their own, into which the steps go."""

import itertools

import pytest

from tests.rewrites.batching.harness import F16, F32, F64, I32, I64, U8, Arg, Case, case, check, const, given, refusal, same, steps

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


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
LENGTH, BATCH, WIDTH, HIDDEN = 4, 2, 3, 5


def _cell(operator: str, direction: str = "forward", inputs: str = "x, w, r", dims: list[str] | None = None, **more: Arg) -> Case:
    ways = 2 if direction == "bidirectional" else 1
    gates = GATES[operator]
    args = {
        "x": steps(F32, LENGTH, BATCH, WIDTH, dims=dims),
        "w": same(F32, ways, gates * HIDDEN, WIDTH),
        "r": same(F32, ways, gates * HIDDEN, HIDDEN),
    } | more
    outputs = "y, h, c" if operator == "LSTM" else "y, h"
    return case(f'{outputs} = {operator} <hidden_size={HIDDEN}, direction="{direction}"> ({inputs})', **args)


@pytest.mark.parametrize("opset", [8, 14, 22])
def test_steps_are_more_rows_of_the_batch(opset: int) -> None:
    cases = []
    for operator, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
        ways = 2 if direction == "bidirectional" else 1
        cases.append(_cell(operator, direction))
        cases.append(_cell(operator, direction, dims=["S", "B", "I"]))
        bias = same(F32, ways, 2 * GATES[operator] * HIDDEN)
        for state, lengths in [(steps, same), (same, steps)]:
            long = given([1, LENGTH], I32) if lengths is same else given([[4, 1], [2, 3], [1, 1]], I32, batched=True)
            args = {"b": bias, "l": long, "h0": state(F32, ways, BATCH, HIDDEN)}
            cases.append(_cell(operator, direction, "x, w, r, b, l, h0", **args))
    check(cases, opset, empty=False)


def test_states_alone_may_differ_between_steps() -> None:
    once = same(F32, LENGTH, BATCH, WIDTH)
    start = {"h0": steps(F32, 1, BATCH, HIDDEN), "c0": same(F32, 1, BATCH, HIDDEN), "p": same(F32, 1, 3 * HIDDEN)}
    cases = [
        _cell("GRU", inputs="x, w, r, , , h0", x=once, h0=steps(F32, 1, BATCH, HIDDEN)),
        _cell("LSTM", inputs="x, w, r, , , h0, c0, p", x=once, **start),
    ]
    check(cases, empty=False)


def test_weights_of_each_step_and_no_rows_are_refused() -> None:
    for operator, gates in GATES.items():
        weights = steps(F32, 1, gates * HIDDEN, WIDTH)
        assert refusal(_cell(operator, w=weights)) == "BATCHED-WEIGHTS"
        assert refusal(_cell(operator), may_be_empty=True) == "EMPTY-STEPS"
    turned = case("y = RNN <hidden_size=5, layout=1> (x, w, r)", x=steps(F32, 2, 4, 3), w=same(F32, 1, 5, 3), r=same(F32, 1, 5, 5))
    assert refusal(turned) == "NO-BATCHING-RULE"


KERNEL_PAIRS = [(steps, steps), (same, steps), (steps, same)]
FORMS = [("", 3, 3), ("<group=3>", 3, 1), ("<pads=[1, 1, 0, 0], strides=[2, 1]>", 3, 3), ("<dilations=[2, 1]>", 3, 3)]


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose"])
def test_weights_of_each_step_are_groups_of_channels(operator: str) -> None:
    cases: list[Case] = []
    for (one, other), (form, channels, own) in itertools.product(KERNEL_PAIRS, FORMS):
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
        for one, other in KERNEL_PAIRS
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


@pytest.mark.parametrize("opset", [11, 13])
def test_an_empty_batch_stays_empty_without_allowzero(opset: int) -> None:
    rows, image = steps(F32, 0, 3, dims=["B", 3]), steps(F32, 0, 4, 5, dims=["B", 4, "N"])
    pixels = steps(F32, 0, 4, 2, 2, dims=["B", 4, "N", "M"])
    cases = [
        case("y = Gemm <alpha = 2.0> (x, w, c)", x=rows, w=same(F32, 3, 4), c=same(F32, 4)),
        case("y = Gemm <alpha = 2.0> (x, w, c)", x=rows, w=same(F32, 3, 4), c=steps(F32, 0, 4, dims=["B", 4])),
        case("y = Gemm (x, w)", x=steps(F16, 0, 3, dims=["B", 3]), w=same(F16, 3, 4)),
        case("y = Conv (x, w)", x=image, w=same(F32, 3, 4, 3)),
        case("y = MaxPool <kernel_shape = [2]> (x)", x=image),
        case("y = InstanceNormalization (x, a, b)", x=image, a=same(F32, 4), b=same(F32, 4)),
        case("y = DepthToSpace <blocksize = 2> (x)", x=pixels),
    ]
    check(cases, opset, empty=False)
