"""Element by element: every operator that broadcasts, and what passes its data through."""

import itertools

import numpy as np
import onnx
import pytest

from rewrites.batching.elementwise import broadcasting
from rewrites.batching.table import _table
from tests.rewrites.batching.harness import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    STEPS,
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

FLOAT_UNARY = [
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor"),
    *("HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round"),
    *("Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu"),
]
OTHER_UNARY = [
    *(("Abs", I32), ("Neg", I64), ("Sign", I64), ("BitwiseNot", I32)),
    *(("Exp", F64), ("Sigmoid", F16), ("Not", BOOL), ("Identity", "str")),
]
BINARY = [
    *itertools.product(("Add", "Sub", "Mul", "Div", "Pow", "Less", "Equal", "GreaterOrEqual"), (F32, F64, I64)),
    *itertools.product(("Max", "Min", "Mod"), (I32, I64)),
    *itertools.product(("Sum", "Mean", "Max", "Min", "Greater", "LessOrEqual"), (F32,)),
    *itertools.product(("And", "Or", "Xor"), (BOOL,)),
    *itertools.product(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), (I32,)),
    *(("Add", F16), ("Mod <fmod=1>", F32), ('BitShift <direction="LEFT">', "uint64")),
]
RANKS = [(), (3,), (2, 3), (4, 2, 3), (1,), (0,), (1, 3)]


@pytest.mark.parametrize("shape", RANKS, ids=str)
def test_one_operand_needs_no_alignment(shape: tuple[int, ...]) -> None:
    unary = [*((op, F32) for op in FLOAT_UNARY), *OTHER_UNARY]
    check([case(f"y = {op} (x)", x=steps(dtype, *shape)) for op, dtype in unary])


def test_one_operand_needs_no_rank() -> None:
    check([case(f"y = {op} (x)", x=steps(F32, 2, 3), unknown_rank=True) for op in FLOAT_UNARY])


def test_later_activations() -> None:
    check([case(f"y = {op} (x)", x=steps(F32, 2, 3)) for op in ("Gelu", "BitCast <to=6>")], opset=26)
    check([case("y = StringConcat (x, w)", x=steps("str", 3), w=same("str", 2, 3))], opset=20)
    check([case("y = Swish (x)", x=steps(F32, 2, 3)), case("y = Equal (x, w)", x=steps("str", 3), w=same("str", 2, 3))], opset=24)


@pytest.mark.parametrize("batched", [(True, False), (False, True), (True, True)], ids=["left", "right", "both"])
def test_two_operands_of_any_ranks_broadcast_within_a_step(batched: tuple[bool, bool]) -> None:
    cases: list[Case] = []
    shapes = list(itertools.product([(), (3,), (2, 3), (4, 2, 3), (4, 1, 3), (1,)], repeat=2))
    for number, (op, dtype) in enumerate(BINARY):
        for left, right in shapes if number == 0 else shapes[number % 7 :: 7]:
            kinds = [steps if one else same for one in batched]
            cases.append(case(f"y = {op} (x, w)", x=kinds[0](dtype, *left), w=kinds[1](dtype, *right, low=1)))
    cases = [one for one in cases if not ("Pow" in one.text and one.args["x"].data.dtype.kind == "i")]
    check(cases)


def test_empty_axes_broadcast() -> None:
    check(
        [case("y = Add (x, w)", x=steps(F32, 0), w=same(F32, 2, 1)), case("y = Mul (x, w)", x=steps(F32, 2, 0, 1), w=steps(F32, 1))]
    )


def test_ranks_are_needed_only_where_operands_must_be_aligned() -> None:
    check(
        [
            case("y = Mul (x, w)", x=steps(F32, 2, 3), w=const(2.0, F32), unknown_rank=True),
            case("y = Mul (x, x)", x=steps(F32, 3), unknown_rank=True),
        ]
    )
    assert refusal(case("y = Mul (x, w)", x=steps(F32, 2, 3), w=const([2.0], F32), unknown_rank=True)) == "RANK-UNKNOWN"
    assert refusal(case("y = Mul (x, w)", x=steps(F32, 2, 3), w=steps(F32, 3), unknown_rank=True)) == "RANK-UNKNOWN"


def test_an_operand_that_has_no_more_axes_is_left_alone() -> None:
    assert emitted(case("y = Add (x, w)", x=steps(F32, 2, 3), w=same(F32, 3))) == ["Add"]
    assert emitted(case("y = Add (x, w)", x=steps(F32, 3), w=same(F32, 2, 3))) == ["Unsqueeze", "Add"]


def test_where_aligns_three_operands() -> None:
    shapes = [(), (3,), (2, 3)]
    cases = [
        case("y = Where (c, a, b)", c=kinds[0](BOOL, *c), a=kinds[1](F32, *a), b=kinds[2](F32, *b))
        for kinds in itertools.product((steps, same), repeat=3)
        if steps in kinds
        for c, a, b in itertools.permutations(shapes)
    ]
    check(cases)


@pytest.mark.parametrize("opset", [8, 13])
def test_variadic_operators_take_many_operands(opset: int) -> None:
    check(
        [case(f"y = {op} (a, b, c)", a=steps(F32, 3), b=same(F32, 2, 1), c=steps(F32)) for op in ("Sum", "Mean", "Max", "Min")],
        opset,
    )


def test_the_slope_of_prelu_broadcasts_to_the_data() -> None:
    check(
        [
            case("y = PRelu (x, s)", x=one(F32, 2, 3), s=other(F32, *slope))
            for one, other in ((steps, same), (same, steps), (steps, steps))
            for slope in [(), (3,), (2, 1), (2, 3)]
        ]
    )


@pytest.mark.parametrize("opset", [8, 12])
def test_clip_keeps_its_bounds(opset: int) -> None:
    if opset < 11:
        check([case("y = Clip <min=-0.5, max=0.5> (x)", x=steps(F32, 4)), case("y = Clip (x)", x=steps(F32))], opset)
    else:
        low, high = const(-0.5, F32), const(0.5, F32)
        check(
            [case("y = Clip (x, l, h)", x=steps(F32, 4), l=low, h=high), case("y = Clip (x, , h)", x=steps(F32, 4), h=high)], opset
        )


def test_clip_with_bounds_of_each_step_treats_nan_and_crossed_bounds_alike() -> None:
    nan = float("nan")
    data = given(np.tile([nan, -0.0, 0.0, -9.0, 9.0, float("inf"), -float("inf")], (STEPS, 1)), F32, batched=True)
    low, high = given([-1, 2, 3], F32, batched=True), given([1, -2, 5], F32, batched=True)
    check(
        [
            case("y = Clip (x, l, h)", x=data, l=low, h=high),
            case("y = Clip (x, l)", x=data, l=low),
            case("y = Clip (x, , h)", x=same(F32, 2, 3), h=high),
            case("y = Clip (x, l, h)", x=steps(I64, 2, 3), l=steps(I64), h=steps(I64)),
            case("y = Clip (x, l)", x=steps(I8, 2, 3), l=steps(I8)),
        ],
        exact=True,
    )
    assert refusal(case("y = Clip (x, l)", x=steps("uint64", 2), l=steps("uint64"))) == "NO-BATCHING-RULE"


def test_conversions() -> None:
    check(
        [
            case("y = Cast <to=7> (x)", x=steps(F32, 2)),
            case("y = Cast <to=1> (x)", x=steps(BOOL)),
            case("y = Cast <to=8> (x)", x=steps(I64, 2)),
            case("y = CastLike (x, w)", x=steps(F32, 2), w=same(I64)),
            case("y = CastLike (x, w)", x=steps(F32, 2), w=steps(I64, 4, 4)),
            case("y = CastLike (x, w)", x=same(F32, 2), w=steps(I64)),
        ],
        opset=19,
    )


@pytest.mark.parametrize("opset", [8, 10, 13])
def test_dropout_passes_its_data_through(opset: int) -> None:
    cases = [case("y = Dropout (x)", x=steps(F32, 2, 3)), case("y = Dropout (x)", x=steps(F32))]
    if opset >= 10:
        cases.append(case("y, m = Dropout (x)", x=steps(F32, 2, 3)))
    if opset >= 12:
        cases.append(
            case("y, m = Dropout (x, r, t)", x=steps(F32, 3), r=given([0.1, 0.2, 0.3], F32, batched=True), t=const(False, BOOL))
        )
        cases.append(case("y = Dropout (x, r)", x=same(F32, 3), r=given([0.1, 0.2, 0.3], F32, batched=True)))
        assert refusal(case("y = Dropout (x, , t)", x=steps(F32, 3), t=const(True, BOOL)), opset) == "RANDOM"
        assert refusal(case("y = Dropout (x, , t)", x=steps(F32, 3), t=same(BOOL)), opset) == "RANDOM"
    check(cases, opset)


def test_contrib_activations() -> None:
    check(
        [
            case("y = com.microsoft.Gelu (x)", x=steps(F32, 2, 4)),
            case("y = com.microsoft.QuickGelu <alpha=1.5> (x)", x=steps(F32, 4)),
            case("y = com.microsoft.FastGelu (x)", x=steps(F32, 4)),
            case("y = com.microsoft.FastGelu (x, b)", x=steps(F32, 4), b=same(F32, 4)),
            case("y = com.microsoft.BiasGelu (x, b)", x=steps(F32, 2, 4), b=const(np.ones(4), F32)),
            case("y = com.microsoft.BiasGelu (x, b)", x=steps(F32, 4), b=const(np.ones(4), F32)),
        ]
    )
    assert refusal(case("y = com.microsoft.BiasGelu (x, b)", x=steps(F32, 2, 4), b=steps(F32, 4))) == "BATCHED-STRUCTURE"


OPERATORS = sorted(
    op
    for (domain, op), entries in _table().items()
    if domain == "" and entries[0].rule is broadcasting and onnx.defs.get_schema(op).max_input > 1
)
TYPES = {"And": BOOL, "Or": BOOL, "Xor": BOOL, "BitShift": "uint32", "Mod": I32, "StringConcat": "str"}
TYPES |= dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor"), I32)
RANKS_TO_BROADCAST = [(), (3,), (2, 3), (4, 2, 3)]
CORNERS = [((1,), (0,)), ((0,), ()), ((1, 3), (2, 1)), ((4, 1, 1), (2, 3)), ((0, 3), (3,)), ((1, 1), (4, 0, 1)), ((1,), (4, 2, 3))]
KINDS = [(steps, same), (same, steps), (steps, steps)]


def _case(op: str, kinds: tuple, shapes: tuple) -> Case:
    dtype = TYPES.get(op, F32)
    args = {name: kind(dtype, *shape, low=1) for name, kind, shape in zip("xw", kinds, shapes, strict=True)}
    if op == "Where":
        return case("y = Where (c, x, w)", **args, c=kinds[1](BOOL, *shapes[0]))
    attributes = '<direction="LEFT">' if op == "BitShift" else ""
    return case(f"y = {op} {attributes} (x, w)", **args)


def test_there_are_operators_to_test() -> None:
    assert {"Add", "Where", "StringConcat", "Max"} <= set(OPERATORS)


@pytest.mark.parametrize("op", OPERATORS)
def test_all_ranks_and_all_choices_of_what_differs(op: str) -> None:
    check(
        [_case(op, kinds, shapes) for kinds in KINDS for shapes in itertools.product(RANKS_TO_BROADCAST, repeat=2)],
        opset=21,
        empty=False,
    )


@pytest.mark.parametrize("kinds", KINDS, ids=["left", "right", "both"])
def test_axes_of_size_one_and_zero(kinds: tuple) -> None:
    check([_case(op, kinds, shapes) for op in ("Add", "Less", "Max", "Where", "And") for shapes in CORNERS], opset=18)


@pytest.mark.parametrize("op", OPERATORS)
def test_unknown_ranks_are_refused_where_they_matter(op: str) -> None:
    one = _case(op, (steps, same), ((2, 3), (3,)))
    one.unknown_rank = True
    assert refusal(one, opset=21) == "RANK-UNKNOWN"
