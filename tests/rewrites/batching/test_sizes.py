import ml_dtypes
import pytest

from tests.rewrites.batching.harness import F32, I32, I64, case, check, const, emitted, given, refusal, same, steps


def test_slice_by_attributes() -> None:
    check(
        [
            case("y = Slice <starts=[1], ends=[3]> (x)", x=steps(F32, 4, 2)),
            case("y = Slice <axes=[1, 0], starts=[-2, 0], ends=[9, 1]> (x)", x=steps(F32, 4, 3)),
        ],
        opset=9,
    )


@pytest.mark.parametrize("opset", [10, 13])
def test_slice_by_inputs(opset: int) -> None:
    cases = [
        case("y = Slice (x, b, e)", x=steps(F32, 4, 2), b=const([1]), e=const([3])),
        case("y = Slice (x, b, e)", x=steps(F32, 4, 2), b=given([1, 0], I64), e=given([3, 1], I64)),
        case("y = Slice (x, b, e, a)", x=steps(F32, 4, 3), b=const([1], I32), e=const([3], I32), a=const([1], I32)),
        case("y = Slice (x, b, e, a)", x=steps(F32, 4, 3), b=const([1], I32), e=const([3], I32), a=const([-1], I32)),
        case("y = Slice (x, b, e, , s)", x=steps(F32, 4), b=const([3]), e=const([-9]), s=const([-2])),
        case(
            "y = Slice (x, b, e, a, s)", x=steps(F32, 4, 3), b=const([-1, 0]), e=const([-99, 3]), a=const([1, 0]), s=const([-1, 2])
        ),
    ]
    check(cases, opset)


def test_slices_that_differ_between_steps_are_refused() -> None:
    bounds = {"b": steps(I64, 1), "e": const([3])}
    assert refusal(case("y = Slice (x, b, e)", x=steps(F32, 4), **bounds)) == "BATCHED-STRUCTURE"
    assert refusal(case("y = Slice (x, b, e)", x=same(F32, 4), **bounds)) == "BATCHED-STRUCTURE"
    some = {"b": const([1]), "e": const([3]), "a": steps(I64, 1)}
    assert refusal(case("y = Slice (x, b, e, a)", x=steps(F32, 4), **some)) == "BATCHED-STRUCTURE"
    unknown = {"b": same(I64, 1, dims=["N"]), "e": same(I64, 1, dims=["N"])}
    assert refusal(case("y = Slice (x, b, e)", x=steps(F32, 4), **unknown)) == "DYNAMIC-STRUCTURE"


def test_axes_of_slices_may_be_computed() -> None:
    bounds = {"b": const([1]), "e": const([3])}
    cases = [case("y = Slice (x, b, e, a)", x=steps(F32, 4, 3), a=given([axis], I64), **bounds) for axis in (0, 1, -1, -2)]
    bounds = {name: const([number], I32) for name, number in (("b", -1), ("e", -9), ("s", -2))}
    check([*cases, case("y = Slice (x, b, e, a, s)", x=steps(F32, 4, 3), a=given([-2], I32), **bounds)])


def test_pad_by_attributes() -> None:
    modes = ("constant", "edge", "reflect")
    check([case(f'y = Pad <mode="{mode}", pads=[0, 1, 1, 0]> (x)', x=steps(F32, 2, 3)) for mode in modes], opset=10)


@pytest.mark.parametrize("opset", [11, 13, 18, 19])
def test_pad_by_inputs(opset: int) -> None:
    modes = ("constant", "edge", "reflect")
    cases = [case(f'y = Pad <mode="{mode}"> (x, p)', x=steps(F32, 2, 3), p=const([0, 1, 1, 0])) for mode in modes]
    cases.append(case("y = Pad (x, p, v)", x=steps(F32, 2, 3), p=const([0, -1, 1, 2]), v=same(F32)))
    cases.append(case("y = Pad (x, p)", x=steps(F32, 2, 3), p=given([0, 1, 1, 0], I64)))
    if opset >= 18:
        cases.append(case("y = Pad (x, p, , a)", x=steps(F32, 2, 3), p=given([1, 2], I64), a=const([1])))
        cases.append(case("y = Pad (x, p, , a)", x=steps(F32, 2, 3), p=const([1, 2]), a=const([-2])))
        cases += [case("y = Pad (x, p, , a)", x=steps(F32, 2, 3), p=const([1, 2]), a=given([axis], I64)) for axis in (1, -2)]
    check(cases, opset)
    assert refusal(case("y = Pad (x, p)", x=steps(F32, 2), p=steps(I64, 2)), opset) == "BATCHED-STRUCTURE"


@pytest.mark.parametrize("opset", [11, 18])
def test_what_is_padded_with_may_differ_between_steps(opset: int) -> None:
    check(
        [
            case("y = Pad (x, p, v)", x=one(dtype, *shape), p=const(pads), v=steps(dtype))
            for one in (steps, same)
            for dtype in (F32, I64)
            for shape, pads in (((2, 3), [0, -1, 1, 2]), ((3,), [2, 0]))
        ],
        opset,
    )
    computed = case("y = Pad (x, p, v)", x=steps(F32, 2, 3, dims=["A", "B"]), p=given([0, 1, 1, 0], I64), v=steps(F32))
    check([computed], opset)


def test_pad_by_wrapping() -> None:
    wrapped = case('y = Pad <mode="wrap"> (x, p)', x=steps(F32, 2, 3), p=const([0, 1, 1, 0]))
    check([wrapped], opset=19, empty=False)
    assert refusal(wrapped, opset=19, may_be_empty=True) == "EMPTY-STEPS"


def test_expand_reaches_its_own_axes_only() -> None:
    shapes = [((3,), [2, 3]), ((3,), [3]), ((2, 1), [4]), ((), [2, 3]), ((1, 3), [4, 1, 1]), ((2, 3), []), ((1,), [0])]
    cases = [
        case("y = Expand (x, s)", x=steps(F32, *shape), s=one(target, I64)) for shape, target in shapes for one in (const, given)
    ]
    check(cases, opset=8)
    assert emitted(case("y = Expand (x, s)", x=steps(F32, 2, 1), s=const([4]))) == ["Expand"]
    assert refusal(case("y = Expand (x, s)", x=steps(F32, 2), s=steps(I64, 1))) == "BATCHED-STRUCTURE"
    assert refusal(case("y = Expand (x, s)", x=steps(F32, 2), s=same(I64, 1, dims=["N"]))) == "RANK-UNKNOWN"
    assert refusal(case("y = Expand (x, s)", x=steps(F32, 2), s=const([2, 2]), unknown_rank=True)) == "RANK-UNKNOWN"


def test_tile_leaves_the_steps_alone() -> None:
    check([case("y = Tile (x, r)", x=steps(F32, 2, 3), r=one([2, 1], I64)) for one in (const, given)], opset=8)
    assert refusal(case("y = Tile (x, r)", x=steps(F32, 2), r=steps(I64, 1))) == "BATCHED-STRUCTURE"


@pytest.mark.parametrize("opset", [8, 13])
def test_concat_copies_what_is_the_same_in_every_step(opset: int) -> None:
    axes = (0, 1, -1) if opset >= 11 else (0, 1)
    cases = [case(f"y = Concat <axis={axis}> (x, w, x)", x=steps(F32, 2, 3), w=same(F32, 2, 3)) for axis in axes]
    cases.append(case("y = Concat <axis=0> (x, w)", x=same("str", 2), w=steps("str", 3)))
    cases.append(case("y = Concat <axis=1> (x, w)", x=steps(F32, 2, 3), w=same(F32, 2, 3), unknown_rank=True))
    check(cases, opset)


def test_a_copy_of_a_type_without_an_expand_kernel() -> None:
    one = case("y = Concat <axis=0> (x, w)", x=steps(F32, 2), w=same(F32, 2))
    for arg in one.args.values():
        arg.data = arg.data.astype(ml_dtypes.bfloat16)
    assert emitted(one) == ["ConstantOfShape", "Unsqueeze", "Gather", "Concat"]


@pytest.mark.parametrize("opset", [8, 13, 15])
def test_shapes_are_the_same_in_every_step(opset: int) -> None:
    ranges = ["", *(("<start=1>", "<start=-1>", "<end=-1>", "<start=-9, end=1>", "<start=1, end=2>") if opset >= 15 else ())]
    cases = [case(f"y = Shape {part} (x)", x=steps(F32, 2, 3, 4, dims=dims)) for part in ranges for dims in (None, [None, 3, None])]
    cases += [case("y = Size (x)", x=steps(F32, 2, 3, dims=dims)) for dims in (None, [None, None])]
    check([*cases, case("y = Shape (x)", x=steps(F32)), case("y = Size (x)", x=steps(F32))], opset)


def test_eye_like_asks_for_the_shape_alone() -> None:
    check(
        [case("y = EyeLike (x)", x=steps(F32, 2, 3)), case("y = EyeLike <dtype=7, k=1> (x)", x=steps(F32, 2, 3, dims=["A", "B"]))]
    )


def test_shapes_made_from_batched_numbers_are_refused() -> None:
    for text, args in [
        ("y = ConstantOfShape (x)", {"x": steps(I64, 1)}),
        ("y = Range (x, w, w)", {"x": steps(I64), "w": same(I64)}),
        ("y = NonZero (x)", {"x": steps(F32, 2)}),
        ("y = Unique (x)", {"x": steps(F32, 2)}),
        ("y = Compress (x, w)", {"x": same(F32, 2), "w": steps("bool", 2)}),
    ]:
        assert refusal(case(text, **args)) == "DATA-DEPENDENT-SHAPE"
