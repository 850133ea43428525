import itertools

import numpy as np
import pytest

from tests.rewrites.batching.harness import F16, F32, F64, I8, U8, Arg, case, check, const, given, refusal, same, steps


def test_layer_normalization_over_trailing_axes() -> None:
    one, two = (same(F32, 3), same(F32, 3)), (same(F32, 4, 3), same(F32, 4, 3))
    cases = []
    for axis, (scale, bias), shape in [(-1, one, (2, 3)), (1, one, (2, 3)), (1, two, (2, 4, 3)), (-2, two, (4, 3)), (0, one, (3,))]:
        cases.append(case(f"y, m, d = LayerNormalization <axis={axis}> (x, s, b)", x=steps(F32, *shape), s=scale, b=bias))
        cases.append(case(f"y = LayerNormalization <axis={axis}, epsilon=0.1> (x, s)", x=steps(F32, *shape), s=scale))
    check(cases, opset=17)


def test_layer_normalization_with_scale_and_bias_of_each_step() -> None:
    cases = []
    for x, scale, bias in [(steps, steps, same), (same, steps, steps), (steps, same, steps), (same, same, steps)]:
        args = {"x": x(F32, 2, 4, 3), "s": scale(F32, 4, 3), "b": bias(F32, 4, 3)}
        cases.append(case("y, m, d = LayerNormalization <axis=1> (x, s, b)", **args))
        args = {"x": x(F64, 2, 3), "s": scale(F64, 3), "b": bias(F64, 3)}
        cases.append(case("y = LayerNormalization (x, s, b)", **args))
    cases.append(case("y = LayerNormalization (x, s)", x=steps(F32, 2, 3, dims=["A", "B"]), s=steps(F32, 3, dims=["B"])))
    check(cases, opset=17)
    check([case("y = RMSNormalization (x, s)", x=one(F32, 2, 3), s=steps(F32, 3)) for one in (steps, same)], opset=23)
    assert refusal(case("y = LayerNormalization (x, s)", x=steps(F16, 2, 3), s=steps(F16, 3))) == "PRECISION"


def test_skip_layer_normalization() -> None:
    more = {"g": same(F32, 4), "b": same(F32, 4), "c": same(F32, 4)}
    cases = []
    for one, other in [(steps, same), (same, steps), (steps, steps)]:
        for shape in ((2, 3, 4), (2, 4)):
            args = {"x": one(F32, *shape), "s": other(F32, *shape), **more}
            cases.append(case("y = com.microsoft.SkipLayerNormalization (x, s, g, b, c)", **args))
            cases.append(case("y, , , t = com.microsoft.SkipSimplifiedLayerNormalization (x, s, g)", **args))
    check(cases)
    spread = case("y = com.microsoft.SkipLayerNormalization (x, s, g)", x=steps(F32, 2, 3, 4), s=same(F32, 3, 4), g=same(F32, 4))
    assert refusal(spread) == "NO-BATCHING-RULE"
    rows = {"x": steps(F32, 2, 4, dims=["N", 4]), "s": same(F32, 1, 4, dims=["M", 4]), "g": same(F32, 4)}
    assert refusal(case("y = com.microsoft.SkipLayerNormalization (x, s, g)", **rows)) == "NO-BATCHING-RULE"
    weights = case("y = com.microsoft.SkipLayerNormalization (x, s, g)", x=same(F32, 2, 4), s=same(F32, 2, 4), g=steps(F32, 4))
    assert refusal(weights) == "BATCHED-WEIGHTS"


def test_layer_normalization_without_mean() -> None:
    one = case("y = SimplifiedLayerNormalization (x, s)", x=steps(F32, 2, 3), s=same(F32, 3))
    check([one])


def test_rms_normalization() -> None:
    check([case(f"y = RMSNormalization <axis={axis}> (x, s)", x=steps(F32, 2, 3), s=same(F32, 3)) for axis in (-1, 1)], opset=23)


IMAGE = (2, 3, 4, 6)


@pytest.mark.parametrize("dims", [None, ["N", 3, "H", "W"]], ids=["known", "symbolic"])
def test_the_steps_are_merged_into_a_batch_axis(dims: list[int | str] | None) -> None:
    def image(*shape: int) -> Arg:
        return steps(F32, *(shape or IMAGE), dims=dims)

    cases = [
        case("y = Conv (x, w, b)", x=image(), w=same(F32, 5, 3, 2, 2), b=same(F32, 5)),
        case("y = ConvTranspose (x, w)", x=image(), w=same(F32, 3, 5, 2, 2)),
        case("y = MaxPool <kernel_shape=[2, 2]> (x)", x=image()),
        case("y = AveragePool <kernel_shape=[2, 2], strides=[2, 2]> (x)", x=image()),
        case("y = GlobalAveragePool (x)", x=image()),
        case("y = GlobalMaxPool (x)", x=image()),
        case("y = LRN <size=3> (x)", x=image()),
        case(
            "y = BatchNormalization (x, s, b, m, v)",
            x=image(),
            s=same(F32, 3),
            b=same(F32, 3),
            m=same(F32, 3),
            v=const([1, 2, 3], F32),
        ),
        case("y = InstanceNormalization (x, s, b)", x=image(), s=same(F32, 3), b=same(F32, 3)),
        case("y = SpaceToDepth <blocksize=2> (x)", x=image()),
        case("y = DepthToSpace <blocksize=2> (x)", x=steps(F32, 2, 4, 2, 3, dims=dims and ["N", 4, "H", "W"])),
        case("y = LpPool <kernel_shape=[2, 2]> (x)", x=image()),
        case("y = GlobalLpPool (x)", x=image()),
        case('y = com.microsoft.FusedConv <activation="Relu"> (x, w)', x=image(), w=same(F32, 5, 3, 2, 2)),
    ]
    check(cases)


def test_group_normalization() -> None:
    one = case("y = GroupNormalization <num_groups=3> (x, s, b)", x=steps(F32, 2, 6, 4), s=same(F32, 6), b=same(F32, 6))
    check([one], opset=21, empty=False)
    assert refusal(one, opset=21, may_be_empty=True) == "EMPTY-STEPS"


def test_integer_convolutions() -> None:
    weights, scale, zero = same(U8, 5, 3, 2, 2), const(0.05, F32), const(3, U8)
    image = steps(U8, *IMAGE, high=200)
    check(
        [
            case("y = ConvInteger (x, w, z)", x=image, w=weights, z=zero),
            case("y = QLinearConv (x, s, z, w, s, z, s, z)", x=image, w=weights, s=scale, z=zero),
        ]
    )


def test_grids_share_the_batch_axis() -> None:
    pairs = [(steps, steps), (steps, same), (same, steps)]
    check([case("y = GridSample (x, g)", x=one(F32, *IMAGE), g=other(F32, 2, 3, 3, 2)) for one, other in pairs])


def test_a_tensor_added_to_a_fused_convolution_takes_the_steps() -> None:
    weights = {"w": same(F32, 5, 3, 2, 2), "b": same(F32, 5)}
    text = "y = com.microsoft.FusedConv (x, w, b, a)"
    pairs = [(steps, steps), (steps, same), (same, steps)]
    check([case(text, x=one(F32, *IMAGE), a=other(F32, 2, 5, 3, 5), **weights) for one, other in pairs])
    assert refusal(case(text, x=steps(F32, *IMAGE), a=same(F32, 2, 5, 3, 5), **weights | {"b": steps(F32, 5)})) == "BATCHED-WEIGHTS"


def test_what_depends_on_the_batch_axis_is_refused() -> None:
    stats = {"s": same(F32, 3), "b": same(F32, 3), "m": same(F32, 3), "v": const([1, 2, 3], F32)}
    trained = case("y, n, w = BatchNormalization <training_mode=1> (x, s, b, m, v)", x=steps(F32, *IMAGE), **stats)
    assert refusal(trained) == "TRAINING"
    assert refusal(case("y = LRN <size=3> (x)", x=steps(F32, *IMAGE), unknown_rank=True)) == "RANK-UNKNOWN"


@pytest.mark.parametrize("opset", [10, 13, 19, 21])
def test_quantization_by_tensor_and_by_axis(opset: int) -> None:
    scale, zero = const(0.1, F32), const(7, U8)
    cases = [
        case("y = QuantizeLinear (x, s, z)", x=steps(F32, 2, 3), s=scale, z=zero),
        case("y = QuantizeLinear (x, s, z)", x=steps(F32), s=scale, z=zero),
        case("y = QuantizeLinear (x, s)", x=steps(F32, 3), s=const([0.1], F32)),
        case("y = DequantizeLinear (x, s, z)", x=steps(U8, 2, 3), s=scale, z=zero),
    ]
    if opset >= 13:
        by_axis, zeros = const([0.1, 0.2, 0.3], F32), const([1, 2, 3], I8)
        cases.append(case("y = QuantizeLinear (x, s, z)", x=steps(F32, 2, 3), s=by_axis, z=zeros))
        cases.append(case("y = QuantizeLinear <axis=-1> (x, s, z)", x=steps(F32, 2, 3), s=by_axis, z=zeros))
        cases.append(case("y = DequantizeLinear <axis=0> (x, s)", x=steps(I8, 3, 2), s=by_axis))
    check(cases, opset)
    if opset >= 21:
        blocked = case("y = DequantizeLinear <block_size=2> (x, s)", x=steps(I8, 2, 4), s=steps(F32, 2, 2))
        assert refusal(blocked, opset) == "NO-BATCHING-RULE"


def test_a_scale_of_each_step_becomes_a_scale_by_axis() -> None:
    scale = given([0.1, 0.02, 0.5], F32, batched=True)
    check(
        [
            case("y = QuantizeLinear (x, s, z)", x=steps(F32, 2, 30), s=scale, z=steps(U8)),
            case("y = QuantizeLinear (x, s, z)", x=same(F32, 3), s=scale, z=const(3, I8)),
            case("y = QuantizeLinear (x, s)", x=steps(F32), s=given([[0.1], [0.02], [0.5]], F32, batched=True)),
            case("y = DequantizeLinear (x, s, z)", x=steps(U8, 2, 30), s=const([0.3], F32), z=steps(U8, 1)),
            case("y = DequantizeLinear (x, s)", x=steps(I8, 4), s=scale),
            case("y = com.microsoft.DequantizeLinear (x, s, z)", x=steps(U8, 2, 3), s=scale, z=steps(U8)),
        ],
        exact=True,
    )
    assert refusal(case("y = QuantizeLinear (x, s)", x=steps(F32, 2), s=same(F32, 1, dims=["N"]))) == "SHAPE-UNKNOWN"


@pytest.mark.parametrize("opset", [10, 13])
def test_scales_of_each_step_are_written_out(opset: int) -> None:
    scale = given([0.1, 0.02, 0.5], F32, batched=True)
    cases = []
    for x, kind in itertools.product((steps, same), (U8, I8)):
        args = {"x": x(F32, 2, 30), "s": scale, "z": steps(kind) if opset >= 11 else same(kind)}
        cases.append(case("y = QuantizeLinear (x, s, z)", **args))
        cases.append(case("y = QuantizeLinear (x, s)", x=x(F32, 30), s=scale))
        cases.append(case("y = DequantizeLinear (x, s, z)", x=x(kind, 2, 30), s=scale, z=same(kind)))
        if opset >= 13:
            by_axis = given([[0.1, 0.2], [0.3, 0.01], [0.5, 2.0]], F32, batched=True)
            args = {"x": x(F32, 2, 30), "s": by_axis, "z": steps(kind, 2)}
            cases.append(case("y = QuantizeLinear <axis=0> (x, s, z)", **args))
            cases.append(case("y = DequantizeLinear <axis=-2> (x, s, z)", **args | {"x": x(kind, 2, 30)}))
    check(cases, opset, exact=True)
    check(
        [
            case(
                "y = QuantizeLinear <axis=0, output_dtype=3> (x, s)",
                x=steps(F32, 2, 30),
                s=given([[0.1, 0.2]] * 3, F32, batched=True),
            )
        ],
        21,
    )
    zeros = case("y = QuantizeLinear (x, s, z)", x=steps(F32, 2), s=scale, z=steps(U8))
    assert refusal(zeros, opset=10) == "NO-BATCHING-RULE"
    wide = case("y = DequantizeLinear (x, s)", x=steps("int32", 2), s=scale)
    assert refusal(wide, opset=10) == "NO-BATCHING-RULE"


def test_dynamic_quantization_has_a_scale_for_each_step() -> None:
    wild = np.stack([np.zeros(6), np.arange(6) * 1e-3, np.arange(6) * -7e4])
    signed = np.stack([np.full(6, 5.0), np.full(6, -0.3), np.linspace(-1, 1.7, 6)])
    cases = [case("y, s, z = DynamicQuantizeLinear (x)", x=given(data, F32, batched=True)) for data in (wild, signed)]
    cases += [case("y, s, z = DynamicQuantizeLinear (x)", x=steps(F32, *shape)) for shape in [(), (5,), (40, 50), (2, 3, 4)]]
    check(cases, exact=True)
    check(cases, 11, exact=True)
