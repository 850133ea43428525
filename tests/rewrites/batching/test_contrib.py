"""Operators of ORT's own domain that its optimiser and quantiser write."""

import itertools

import numpy as np

from tests.rewrites.batching.harness import F32, I8, I32, U8, Arg, Case, case, check, const, given, refusal, same, steps

KINDS = [(steps, same), (same, steps), (steps, steps)]


def _scaled(text: str, x: Arg, **more: Arg) -> Case:
    return case(f"y = com.microsoft.{text}", x=x, s=const(0.05, F32), z=const(128, U8), **more)


def test_quantized_activations_and_pools() -> None:
    image = steps(U8, 2, 3, 4, 6, high=256)
    cases = [
        _scaled(f"{op} (x, s, z, s, z)", steps(U8, 2, 3, high=256)) for op in ("QLinearSigmoid", "QLinearLeakyRelu <alpha=0.1>")
    ]
    cases.append(_scaled("QLinearAveragePool <kernel_shape=[2, 2]> (x, s, z, s, z)", image))
    cases.append(_scaled("QLinearGlobalAveragePool (x, s, z, s, z)", image))
    cases.append(case("y = com.microsoft.NhwcMaxPool <kernel_shape=[2, 2]> (x)", x=image))
    cases += [_scaled(f"QLinearSoftmax <opset=13, axis={axis}> (x, s, z, s, z)", image) for axis in (-1, 1)]
    cases.append(_scaled("QLinearSoftmax <opset=12, axis=1> (x, s, z, s, z)", image))
    check(cases, empty=False)
    assert (
        refusal(case("y = com.microsoft.QLinearSigmoid (x, s, z, s, z)", x=same(U8, 2), s=steps(F32), z=same(U8)))
        == "BATCHED-WEIGHTS"
    )


def test_quantized_sums_and_products() -> None:
    shapes = [((2, 3), (2, 3)), ((3,), (2, 3)), ((2, 3), (3,)), ((2, 3), ())]
    check(
        [
            _scaled(f"{op} (x, s, z, w, s, z, s, z)", one(U8, *left, high=256), w=other(U8, *right, high=256))
            for op in ("QLinearAdd", "QLinearMul")
            for one, other in KINDS
            for left, right in shapes
        ],
        empty=False,
    )


def test_inverses() -> None:
    x = steps(F32, 2, 3, 3)
    x.data[...] += 5 * np.eye(3, dtype=np.float32)
    check([case("y = com.microsoft.Inverse (x)", x=x)], empty=False)


def test_products_with_packed_and_quantized_weights() -> None:
    packed = same(U8, 4, 1, 16, high=256)
    text = "y = com.microsoft.MatMulNBits <K=32, N=4, bits=4, block_size=32> (x, w, s)"
    check([case(text, x=steps(F32, *shape, 32), w=packed, s=same(F32, 4)) for shape in ((2,), (3, 2))], empty=False)
    assert refusal(case(text, x=steps(F32, 2, 32), w=packed, s=steps(F32, 4))) == "BATCHED-WEIGHTS"
    text = "y = com.microsoft.MatMulIntegerToFloat (x, w, s, t, a, b, c)"
    rest = {"s": const(0.1, F32), "t": same(F32, 4), "a": const(3, U8), "b": const(1, I8), "c": same(F32, 4)}
    weights = same(I8, 3, 4, low=-100, high=100)
    check([case(text, x=steps(U8, *shape, 3, high=256), w=weights, **rest) for shape in ((2,), (5, 2))], empty=False)
    assert refusal(case(text, x=steps(U8, 2, 3), w=steps(I8, 3, 4), **rest)) == "BATCHED-WEIGHTS"


def test_attention_with_packed_weights() -> None:
    text = "y = com.microsoft.Attention <num_heads=2{}> (x, w, b{})"
    weights = {"w": same(F32, 8, 24), "b": same(F32, 24)}
    check([case(text.format(form, ""), x=steps(F32, 2, 5, 8), **weights) for form in ("", ", unidirectional=1")], empty=False)
    masked = case(text.format("", ", m"), x=steps(F32, 2, 5, 8), m=const([3, 5], I32), **weights)
    assert refusal(masked) == "NO-BATCHING-RULE"


def test_embeddings() -> None:
    tables = {"w": same(F32, 9, 4), "p": same(F32, 6, 4), "q": same(F32, 2, 4), "g": same(F32, 4), "b": same(F32, 4)}
    text = "y, m = com.microsoft.EmbedLayerNormalization (i, j, w, p, q, g, b{})"
    cases = []
    for one, other in KINDS:
        args = {"i": one(I32, 2, 5, low=0, high=9), "j": other(I32, 2, 5, low=0, high=2)}
        cases.append(case(text.format(""), **args, **tables))
        cases.append(case(text.format(", k"), **args, **tables, k=given([[1, 1, 1, 0, 0], [1] * 5], I32)))
    numbered = text.format(", , n")
    for numbers in (same(I32, 1, 5, low=0, high=6), same(I32, 2, 5, low=0, high=6), steps(I32, 2, 5, low=0, high=6)):
        cases.append(case(numbered, **cases[0].args, n=numbers))
    check(cases, empty=False)
    unknown = case(numbered, **cases[0].args, n=same(I32, 1, 5, dims=["N", 5], low=0, high=6))
    assert refusal(unknown) == "NO-BATCHING-RULE"
    assert refusal(case(text.format(""), **cases[0].args | {"g": steps(F32, 4)})) == "BATCHED-WEIGHTS"


def test_there_is_nothing_for_other_operators() -> None:
    for op, args in itertools.product(("CDist", "DynamicQuantizeMatMul"), [{"x": steps(F32, 2, 3), "w": same(F32, 2, 3)}]):
        assert refusal(case(f"y = com.microsoft.{op} (x, w)", **args)) == "NO-BATCHING-RULE"
