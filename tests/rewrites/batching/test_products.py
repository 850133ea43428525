import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.rewrites.batching.harness import (
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    U8,
    Arg,
    Case,
    case,
    check,
    const,
    emitted,
    given,
    refusal,
    same,
    steps,
)

Kind = Callable[..., Arg]
LEFT = [(3,), (2, 3), (4, 2, 3), (1, 2, 3), (5, 4, 2, 3), (1, 3)]
RIGHT = [(3,), (3, 6), (4, 3, 6), (3, 1), (5, 1, 3, 6)]
KINDS = [(steps, same), (same, steps), (steps, steps)]


def _pairs() -> list[tuple[Arg, Arg]]:
    return [(one(F32, *left), other(F32, *right)) for one, other in KINDS for left, right in itertools.product(LEFT, RIGHT)]


@pytest.mark.parametrize("opset", [8, 13])
def test_products_of_all_ranks(opset: int) -> None:
    check([case("y = MatMul (x, w)", x=left, w=right) for left, right in _pairs()], opset)


@pytest.mark.parametrize("dtype", [F64, F16, I32, I64])
def test_products_of_other_types(dtype: str) -> None:
    shapes = [((3,), (3,)), ((2, 3), (3, 4)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 1))]
    check([case("y = MatMul (x, w)", x=one(dtype, *x), w=other(dtype, *w)) for one, other in KINDS for x, w in shapes])


def test_products_of_symbolic_dimensions() -> None:
    def named(kind: Kind, shape: tuple[int, ...]) -> Arg:
        return kind(F32, *shape, dims=[f"D{place}" for place in range(len(shape))])

    shapes = itertools.product(((3,), (2, 3), (4, 2, 3)), ((3,), (3, 6), (4, 3, 6)))
    check([case("y = MatMul (x, w)", x=named(one, x), w=named(other, w)) for x, w in shapes for one, other in KINDS])


def test_weights_make_one_large_product() -> None:
    weights = const(np.ones((3, 4)), F32)
    assert emitted(case("y = MatMul (x, w)", x=steps(F32, 2, 3), w=weights)) == ["MatMul"]
    assert emitted(case("y = MatMul (x, w)", x=steps(F32, 3), w=weights)) == ["MatMul"]
    assert emitted(case("y = MatMul (w, x)", x=steps(F32, 4), w=weights)) == ["Transpose", "MatMul"]
    assert "Transpose" in emitted(case("y = MatMul (x, w)", x=steps(F32, 4, 1, 3), w=same(F32, 4, 3, 4)))


def test_products_need_ranks_only_where_they_must_be_aligned() -> None:
    free = case("y = MatMul (x, w)", x=steps(F32, 2, 3), w=const(np.ones((3, 4)), F32), unknown_rank=True)
    check([free, case("y = MatMul (x, w)", x=steps(F32, 2, 3), w=const(np.ones(3), F32), unknown_rank=True)], empty=False)
    assert refusal(case("y = MatMul (x, w)", x=steps(F32, 2, 3), w=same(F32, 3, 4), unknown_rank=True)) == "RANK-UNKNOWN"
    assert refusal(case("y = MatMul (x, w)", x=steps(F32, 2, 3), w=steps(F32, 3, 4), unknown_rank=True)) == "RANK-UNKNOWN"


def test_fused_products() -> None:
    cases = []
    for one, other in KINDS:
        for flags, left, right in [
            ("", (2, 3), (3, 4)),
            ("<transA=1>", (3, 2), (3, 4)),
            ("<transB=1, alpha=0.5>", (2, 3), (4, 3)),
            ("<transA=1, transB=1>", (3, 2), (4, 3)),
            ("<transB=1>", (3,), (4, 3)),
            ("<transB=1>", (3,), (5, 4, 3)),
            ("<transB=1>", (2, 3), (3,)),
            ("<transA=1>", (3,), (3, 4)),
            ("<transB=1>", (5, 2, 3), (5, 4, 3)),
            ("<transA=1>", (3, 2), (5, 3, 4)),
        ]:
            cases.append(case(f"y = com.microsoft.FusedMatMul {flags} (x, w)", x=one(F32, *left), w=other(F32, *right)))
    check([one for one in cases if "transA" not in one.text])
    check(cases, empty=False)
    turned = case("y = com.microsoft.FusedMatMul <transBatchA=1> (x, w)", x=steps(F32, 5, 2, 3), w=steps(F32, 2, 3, 4))
    assert refusal(turned) == "NO-BATCHING-RULE"
    vector = case("y = com.microsoft.FusedMatMul <transA=1> (x, w)", x=steps(F32, 3, 2), w=same(F32, 3))
    assert refusal(vector) == "NO-BATCHING-RULE"
    assert refusal(vector, may_be_empty=True) == "EMPTY-STEPS"


def test_no_transpose_stands_before_a_product_with_a_vector() -> None:
    vector = case("y = MatMul (x, w)", x=steps(F32, 2, 3), w=same(F32, 3))
    assert emitted(vector) == ["Unsqueeze", "MatMul", "Squeeze"]


ALL_KINDS = list(itertools.product((steps, same), repeat=3))
C_SHAPES = [None, (), (1,), (4,), (1, 4), (2, 4), (2, 1), (1, 1)]


def _gemm(attributes: dict[str, float | str], a: Arg, b: Arg, c: Arg | None, op: str = "Gemm") -> Case:
    text = ", ".join(f"{name}={value}" for name, value in attributes.items())
    more = {} if c is None else {"c": c}
    return case(f"y = {op} {f'<{text}>' if text else ''} (a, b{', c' * bool(more)})", a=a, b=b, **more)


def _gemms(
    dtype: str,
    op: str = "Gemm",
    which: Sequence[Sequence[Kind]] = ALL_KINDS,
    extra: dict[str, str] | None = None,
    c_shapes: Sequence[tuple[int, ...] | None] = C_SHAPES,
) -> list[Case]:
    cases = []
    scales = [{}, {"alpha": 0.5}, {"beta": 2.0}, {"alpha": 0.5, "beta": 0.25}, {"beta": 0.0}]
    turns = [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}]
    for number, (kinds, c) in enumerate(itertools.product(which, c_shapes)):
        scale, turn = scales[number % len(scales)], turns[number % len(turns)]
        if kinds[:2] == (same, same) and (c is None or kinds[2] is same or scale.get("beta") == 0.0):
            continue
        a = kinds[0](dtype, *((3, 2) if "transA" in turn else (2, 3)))
        b = kinds[1](dtype, *((4, 3) if "transB" in turn else (3, 4)))
        cases.append(_gemm({**scale, **turn, **(extra or {})}, a, b, None if c is None else kinds[2](dtype, *c), op))
    return cases


@pytest.mark.parametrize("dtype", [F32, F64])
def test_gemm_with_every_operand_batched_or_not(dtype: str) -> None:
    check(_gemms(dtype), opset=13)


def test_gemm_before_c_was_optional() -> None:
    check(_gemms(F32, c_shapes=C_SHAPES[1:]), opset=9)


def test_gemm_of_half_floats_stays_one_operator() -> None:
    kinds = [(steps, same, same), (steps, same, steps)]
    check(_gemms(F16, which=kinds))
    one = _gemm({}, steps(F16, 2, 3), steps(F16, 3, 4), same(F16, 4))
    assert refusal(one) == "PRECISION"
    check([_gemm({}, steps(F16, 2, 3), steps(F16, 3, 4), None)])


def test_fused_gemm() -> None:
    kinds = [(steps, same, same), (steps, same, steps)]
    check(_gemms(F32, "com.microsoft.FusedGemm", kinds, {"activation": '"Relu"'}))
    one = _gemm({"activation": '"Relu"'}, same(F32, 2, 3), steps(F32, 3, 4), same(F32, 4), "com.microsoft.FusedGemm")
    assert refusal(one) == "NO-BATCHING-RULE"


def test_gemm_of_symbolic_dimensions() -> None:
    def named(kind: Kind, names: str, *shape: int) -> Arg:
        return kind(F32, *shape, dims=list(names))

    check(
        [
            _gemm(scale, named(one, "MK", 2, 3), named(other, "KN", 3, 4), named(third, "MN", 2, 4))
            for one, other in KINDS
            for third in (steps, same)
            for scale in ({}, {"alpha": 0.5})
        ]
    )
    assert refusal(case("y = Gemm (a, b)", a=steps(F32, 2, 3), b=same(F32, 3, 4), unknown_rank=True)) == "RANK-UNKNOWN"


def test_gemm_on_weights_takes_the_fastest_form() -> None:
    weights, bias = const(np.ones((4, 3)), F32), const(np.ones(4), F32)
    assert emitted(_gemm({"transB": 1}, steps(F32, 1, 3), weights, bias)) == ["Transpose", "MatMul", "Add"]
    assert emitted(_gemm({"transB": 1, "alpha": 2.0}, steps(F32, 1, 3), weights, bias)) == ["Flatten", "Gemm", "Reshape"]


EQUATIONS = [
    *(("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("i,i->", (3,), (3,)), ("i,i", (3,), (3,)), ("b,a", (2,), (3,))),
    *(
        ("...ij,...jk->...ik", (5, 2, 3), (5, 3, 4)),
        ("i...,i...->...", (3, 2), (3, 2)),
        ("ij,j->j", (2, 3), (3,)),
        (",i->i", (), (3,)),
    ),
]


def test_einsum() -> None:
    cases = [
        case(f'y = Einsum <equation="{text}"> (x, w)', x=one(F32, *left), w=other(F32, *right))
        for one, other in KINDS
        for text, left, right in EQUATIONS
    ]
    single = ("ii->i", "ij->ji", "ij->", "ba", "a b -> b", "ii", "... a -> ...")
    check([*cases, *(case(f'y = Einsum <equation="{text}"> (x)', x=steps(F32, 3, 3)) for text in single)], empty=False)
    assert refusal(cases[0], may_be_empty=True) == "EMPTY-STEPS"


def test_einsum_without_a_free_letter_is_refused() -> None:
    from string import ascii_letters

    equation = f"{ascii_letters[:26]},{ascii_letters[26:]}->"
    one = case(f'y = Einsum <equation="{equation}"> (x, w)', x=steps(F32, *[1] * 26), w=same(F32, *[1] * 26))
    assert refusal(one) == "NO-BATCHING-RULE"


def test_integer_products() -> None:
    cases = []
    for (one, other), (left, right) in itertools.product(
        KINDS, [((2, 3), (3, 4)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (3,))]
    ):
        for x_type, w_type in ((U8, I8), (U8, U8), (I8, I8)):
            zeros = {"p": same(x_type), "q": same(w_type)}
            args = {"x": one(x_type, *left), "w": other(w_type, *right)}
            cases.append(case("y = MatMulInteger (x, w)", **args))
            cases.append(case("y = MatMulInteger (x, w, p, q)", **args, **zeros))
    check(cases)


def test_a_zero_point_of_each_step_is_taken_out_of_an_integer_product() -> None:
    shapes = [((2, 3), (3, 4)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((2, 3), (3,)), ((3,), (3,))]
    cases = []
    for one, (left, right) in itertools.product((steps, same), shapes):
        args = {"x": one(U8, *left, high=256), "w": same(I8, *right, low=-128, high=128), "p": steps(U8, high=256)}
        cases.append(case("y = MatMulInteger (x, w, p)", **args))
        cases.append(case("y = MatMulInteger (x, w, p, q)", **args, q=same(I8)))
    cases.append(case("y = MatMulInteger (x, w, p, q)", x=steps(U8, 2, 3), w=same(I8, 3, 4), p=steps(U8, 1), q=same(I8, 4)))
    check(cases)
    both = case("y = MatMulInteger (x, w, p)", x=steps(U8, 2, 3), w=steps(I8, 3, 4), p=steps(U8))
    assert refusal(both) == "BATCHED-STRUCTURE"
    assert refusal(case("y = MatMulInteger (x, w, , q)", x=steps(U8, 2, 3), w=same(I8, 3, 4), q=steps(I8))) == "BATCHED-STRUCTURE"


def test_quantized_products() -> None:
    scale, zero = const(0.05, F32), const(3, U8)
    text = "y = QLinearMatMul (x, s, z, w, s, z, s, z)"
    check([case(text, x=one(U8, 2, 3, high=200), w=other(U8, 3, 4, high=200), s=scale, z=zero) for one, other in KINDS])
    assert refusal(case(text, x=steps(U8, 2, 3), w=same(U8, 3, 4), s=scale, z=steps(U8))) == "BATCHED-WEIGHTS"


SCALES = ([0.05, 0.02, 0.1], [0.03, 0.08, 0.02], [0.3, 0.2, 0.5])


def _scales(*kinds: Kind) -> dict[str, Arg]:
    pairs = zip("stu", kinds, SCALES, strict=True)
    return {name: given(numbers if kind is steps else numbers[0], F32, batched=kind is steps) for name, kind, numbers in pairs}


def test_quantized_products_with_scales_of_each_step() -> None:
    scales = [_scales(*kinds) for kinds in ((steps, same, same), (same, same, steps), (steps, steps, steps))]
    zeros = {"a": const(120, U8), "b": const(3, I8), "c": const(128, U8)}
    shapes = [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4))]
    text = "y = QLinearMatMul (x, s, a, w, t, b, u, c)"
    cases = [
        case(text, x=one(U8, *x, high=256), w=other(I8, *w, low=-128, high=128), **scale, **zeros)
        for one, other in [*KINDS, (same, same)]
        for scale in scales
        for x, w in shapes
    ]
    columns = {"t": given([[0.1, 0.2, 0.3, 0.4]] * 3, F32, batched=True), "b": const([0, 1, 2, 3], I8)}
    cases.append(case(text, x=steps(U8, 2, 3), w=same(I8, 3, 4), **scales[0] | zeros | columns))
    check(cases, exact=True)


def test_quantized_convolutions_with_scales_of_each_step() -> None:
    text = "y = QLinearConv <pads=[1, 1, 0, 0]> (x, s, a, w, t, b, u, c{})"
    zeros = {"a": const(120, U8), "b": const(3, U8), "c": const(128, U8)}
    weights = same(U8, 5, 3, 2, 2, high=256)
    cases = []
    for one, kinds in itertools.product((steps, same), [(steps, same, same), (same, same, steps), (steps, steps, steps)]):
        args = {"x": one(U8, 2, 3, 4, 4, high=256), "w": weights, **_scales(*kinds), **zeros}
        cases.append(case(text.format(""), **args))
        cases.append(case(text.format(", d"), **args, d=same(I32, 5, low=-900, high=900)))
    zeros_by_channel = case(text.format(""), **cases[0].args | {"b": const([3] * 5, U8)})
    assert refusal(zeros_by_channel) == "NO-BATCHING-RULE"
    by_channel = {"t": steps(F32, 5)}
    by_channel["t"].data[...] = np.abs(by_channel["t"].data) + 0.1
    cases.append(case(text.format(""), **cases[0].args | by_channel))
    check(cases, exact=True)
