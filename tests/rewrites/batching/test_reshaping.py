import numpy as np
import pytest

from ortscan.api import rewritten
from ortscan.modelio import to_caller_type
from tests.rewrites.batching.harness import F32, I64, Case, case, check, const, emitted, given, refusal, same, steps
from tests.support.text import assert_same_numbers, model_from_text, ort_run


@pytest.mark.parametrize("opset", [8, 12, 13, 21])
def test_unsqueeze_and_squeeze_in_both_spellings(opset: int) -> None:
    def on(operator: str, axes: list[int], *shape: int) -> Case:
        if opset < 13:
            return case(f"y = {operator} <axes={axes}> (x)", x=steps(F32, *shape))
        return case(f"y = {operator} (x, a)", x=steps(F32, *shape), a=const(axes))

    cases = [on("Unsqueeze", [0], 3), on("Unsqueeze", [0, 2], 3), on("Unsqueeze", [0])]
    cases += [on("Squeeze", [0], 1, 3), on("Squeeze", [0, 2], 1, 3, 1)]
    if opset >= 11:
        cases += [on("Unsqueeze", [-1], 3), on("Unsqueeze", [-1, 0], 3), on("Squeeze", [-1], 3, 1)]
    check([*cases, case("y = Squeeze (x)", x=steps(F32, 1, 3, 1)), case("y = Squeeze (x)", x=steps(F32, 2))], opset)


def test_squeeze_without_axes_needs_sizes() -> None:
    assert refusal(case("y = Squeeze (x)", x=steps(F32, 1, 3, dims=["A", 3]))) == "SHAPE-UNKNOWN"
    assert refusal(case("y = Unsqueeze (x, a)", x=same(F32, 1, 3), a=steps(I64, 1))) == "BATCHED-STRUCTURE"


def test_axes_may_be_computed() -> None:
    cases = [case("y = Squeeze (x, a)", x=steps(F32, 1, 3, 1), a=given(axes, I64)) for axes in ([0], [-1], [2, -3])]
    cases += [case("y = Unsqueeze (x, a)", x=steps(F32, 2, 3), a=given(axes, I64)) for axes in ([0], [-1], [3, 1], [-4, -1], [])]
    check(cases)
    free = [case("y = Unsqueeze (x, a)", x=steps(F32, 3), a=given([-1], I64), unknown_rank=True)]
    check(free)
    unknown = case("y = Squeeze (x, a)", x=steps(F32, 1, 3), a=same(I64, 1, dims=["N"], low=0, high=1))
    assert refusal(unknown) == "DYNAMIC-STRUCTURE"


@pytest.mark.parametrize("dims", [None, ["A", "B", "C"]], ids=["known", "symbolic"])
@pytest.mark.parametrize("opset", [11, 13, 14])
def test_flatten_at_every_axis(opset: int, dims: list[str] | None) -> None:
    cases = [case(f"y = Flatten <axis={axis}> (x)", x=steps(F32, 2, 4, 3, dims=dims)) for axis in range(-3, 4)]
    cases += [case("y = Flatten (x)", x=steps(F32, 2, 3)), case("y = Flatten (x)", x=steps(F32, 3))]
    check([*cases, case("y = Flatten <axis=0> (x)", x=steps(F32))], opset)
    assert refusal(case("y = Flatten (x)", x=steps(F32, 2, 3), unknown_rank=True), opset) == "RANK-UNKNOWN"


SHAPES = [
    *(((6,), [2, 3]), ((2, 3), [-1]), ((2, 3), [3, -1]), ((1, 1), []), ((), [1, 1])),
    *(((2, 4, 3), [0, -1]), ((2, 4, 3), [0, 0, -1]), ((2, 4, 3), [-1, 0, 3])),
]


@pytest.mark.parametrize("opset", [8, 13, 14])
def test_reshape_to_a_constant_shape(opset: int) -> None:
    check([case("y = Reshape (x, s)", x=steps(F32, *shape), s=const(target)) for shape, target in SHAPES], opset)


def test_reshape_of_unknown_dimensions() -> None:
    for kind in (const, given):
        cases = [
            case("y = Reshape (x, s)", x=steps(F32, *shape, dims=[None] * len(shape)), s=kind(target, I64))
            for shape, target in SHAPES
            if shape and len(target) > 1
        ]
        check(cases, empty=False)
        assert refusal(cases[1], may_be_empty=True) == "EMPTY-STEPS"


def test_reshape_to_one_axis_works_without_steps() -> None:
    whole = case("y = Reshape (x, s)", x=steps(F32, 2, 3, dims=["A", "B"]), s=const([-1]))
    assert emitted(whole) == ["Flatten"]
    check([whole])


def test_reshape_where_zero_means_zero() -> None:
    check(
        [
            case("y = Reshape <allowzero=1> (x, s)", x=steps(F32, 0, 3), s=const([3, 0])),
            case("y = Reshape <allowzero=1> (x, s)", x=steps(F32, 2, 3), s=const([3, -1])),
            case("y = Reshape <allowzero=1> (x, s)", x=steps(F32, 0, 3, dims=["A", 3]), s=const([3, 0])),
            case("y = Reshape (x, s)", x=steps(F32, 2, 0), s=const([5, 0])),
        ]
    )


def test_reshape_by_a_computed_shape_with_zeros() -> None:
    check([case("y = Reshape <allowzero=1> (x, s)", x=steps(F32, 0, 3, dims=["A", 3]), s=given([3, 0], I64))], empty=False)


def test_a_shape_that_differs_between_steps_is_refused() -> None:
    assert refusal(case("y = Reshape (x, s)", x=steps(F32, 6), s=steps(I64, 2))) == "BATCHED-STRUCTURE"


@pytest.mark.parametrize(
    ("where", "row", "joined"),
    [("1", "B,2", "one, size, two"), ("1", "B,2", "one, two, size"), ("2", "2,B", "size, two"), ("1", "B,2", "two, size")],
)
def test_a_computed_dimension_may_be_0(where: str, row: str, joined: str) -> None:
    model = model_from_text(
        f"""g (float[T,{row}] x) => (float[T,{",".join("ABC"[: joined.count(",") + 1])}] y) {{
            y = Scan <num_scan_inputs = 1, body = b (float[{row}] r) => (float[{",".join("ABC"[: joined.count(",") + 1])}] v)
            <int64[1] at = {{{where}}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{
                sizes = Shape (x) size = Gather (sizes, at) shape = Concat <axis = 0> ({joined}) v = Reshape (r, shape)
            }}> (x)
        }}""",
        18,
    )
    loaded, report = rewritten(model, debug=True)
    assert not report.operators_after["Scan"]
    for size in (0, 1, 3):
        x = np.arange(8 * size, dtype=np.float32).reshape(4, *(size if dim == "B" else 2 for dim in row.split(",")))
        assert_same_numbers(ort_run(to_caller_type(loaded), {"x": x}), ort_run(model, {"x": x}))
