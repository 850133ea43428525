"""Operators of ORT's own domain that its optimiser and quantiser write."""

import itertools

import numpy as np

from tests.rewrites.batching.harness import BOOL, F32, I8, I32, U8, Arg, Case, case, check, const, given, refusal, same, steps

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


def test_products_that_quantise_their_data() -> None:
    text = "y = com.microsoft.DynamicQuantizeMatMul (x, w, s{})"
    cases = []
    for dtype, scales in itertools.product((I8, U8), (const(0.05, F32), const([0.05, 0.1, 0.02, 0.3], F32))):
        weights = same(dtype, 3, 4, low=-60, high=60)
        zeros = const(3, dtype) if scales.data.ndim == 0 else const([3, 0, 1, 2], dtype)
        for shape in ((2,), (5, 2)):
            x = steps(F32, *shape, 3)
            cases.append(case(text.format(""), x=x, w=weights, s=scales))
            cases.append(case(text.format(", z, b"), x=x, w=weights, s=scales, z=zeros, b=same(F32, 4)))
    check(cases, empty=False)
    assert refusal(case(text.format(""), x=steps(F32, 2, 3), w=steps(I8, 3, 4), s=const(0.1, F32))) == "BATCHED-WEIGHTS"


def test_quantized_choices_and_concatenations() -> None:
    text = "y = com.microsoft.QLinearWhere (c, x, s, z, w, s, z, s, z)"
    shapes = [((2, 3), (2, 3), (2, 3)), ((3,), (2, 3), ()), ((2, 1), (3,), (2, 3))]
    check(
        [
            _scaled(text.removeprefix("y = com.microsoft."), one(U8, *x, high=256), w=other(U8, *w, high=256), c=same(BOOL, *c))
            for one, other in KINDS
            for c, x, w in shapes
        ],
        empty=False,
    )
    text = "QLinearConcat <axis={}> (s, z, x, s, z, w, t, z)"
    check(
        [
            _scaled(text.format(axis), one(U8, 2, 3, high=256), w=other(U8, 2, 3, high=256), t=const(0.1, F32))
            for one, other in KINDS
            for axis in (0, 1, -1)
        ],
        empty=False,
    )


def test_quantized_attention() -> None:
    text = "y = com.microsoft.QAttention <num_heads=2{}> (x, w, b, s, t, {}, z, u)"
    rest = {"w": same(U8, 8, 24, high=256), "b": same(F32, 24), "s": const(0.05, F32), "t": const(0.02, F32)}
    rest |= {"z": const(128, U8), "u": const(120, U8)}
    x = steps(U8, 2, 5, 8, high=256)
    check([case(text.format(form, ""), x=x, **rest) for form in ("", ", unidirectional=1")], empty=False)
    assert refusal(case(text.format("", "m"), x=x, m=const([3, 5], I32), **rest)) == "NO-BATCHING-RULE"


def test_group_query_attention() -> None:
    text = "y, p, r = com.microsoft.GroupQueryAttention <num_heads=4, kv_num_heads=2{}> (q, k, v, {}, n, t{})"
    cases = []
    for one, other in KINDS:
        rows = {"q": one(F32, 2, 1, 64), "k": other(F32, 2, 1, 32), "v": other(F32, 2, 1, 32)}
        past = {"a": one(F32, 2, 2, 6, 16), "b": other(F32, 2, 2, 6, 16)}
        sizes = {"n": const([4, 6], I32), "t": const(7, I32)}
        cases.append(case(text.format("", "a, b", ""), **rows, **past, **sizes))
        turned = {"c": same(F32, 8, 8), "d": same(F32, 8, 8)}
        cases.append(case(text.format(", do_rotary=1", "a, b", ", c, d"), **rows, **past, **sizes, **turned))
    check(cases, empty=False)
    packed = case("y, p, r = com.microsoft.GroupQueryAttention <num_heads=4, kv_num_heads=2> (q, , , a, b, n, t)", **cases[0].args)
    del packed.args["k"], packed.args["v"]
    assert refusal(packed) == "NO-BATCHING-RULE"


def test_there_is_nothing_for_other_operators() -> None:
    assert refusal(case("y = com.microsoft.CDist (x, w)", x=steps(F32, 2, 3), w=same(F32, 2, 3))) == "NO-BATCHING-RULE"
