"""Attention in each step, with what it is masked by and what it remembers."""

import itertools

import numpy as np
import pytest

from tests.rewrites.batching.harness import BOOL, F32, I64, Arg, Case, case, check, const, given, refusal, same, steps

B, H, S, K, D = 2, 3, 4, 5, 8
KINDS = [kinds for kinds in itertools.product((steps, same), repeat=3) if steps in kinds]


def _qkv(kinds: tuple = (steps, steps, steps), flat: bool = False, dims: list[str] | None = None) -> dict[str, Arg]:
    shapes = [(B, S, H * D), (B, K, H * D), (B, K, H * D)] if flat else [(B, H, S, D), (B, H, K, D), (B, H, K, D)]
    return {name: kind(F32, *shape, dims=dims) for name, kind, shape in zip("qkv", kinds, shapes, strict=True)}


@pytest.mark.parametrize("opset", [23, 24])
def test_steps_are_merged_into_the_batch(opset: int) -> None:
    heads = f"<q_num_heads={H}, kv_num_heads={H}>"
    cases = [case("y = Attention (q, k, v)", **_qkv(kinds)) for kinds in KINDS]
    cases += [case(f"y = Attention {heads} (q, k, v)", **_qkv(kinds, flat=True)) for kinds in KINDS]
    cases.append(case("y = Attention <is_causal=1, scale=0.3, softcap=2.0> (q, k, v)", **_qkv()))
    cases.append(case("y = Attention (q, k, v)", **_qkv(dims=["B", "H", "S", "D"])))
    check(cases, opset, empty=False)
    assert refusal(cases[0], opset, may_be_empty=True) == "EMPTY-STEPS"


MASKS = [(S, K), (1, S, K), (H, S, K), (1, 1, S, K), (B, 1, S, K), (B, H, S, K)]


@pytest.mark.parametrize("dtype", [F32, BOOL])
def test_masks_are_spread_to_the_merged_batch(dtype: str) -> None:
    def masked(kind: object, shape: tuple[int, ...], named: bool, queries: tuple) -> Case:
        dims = [f"M{place}" for place in range(len(shape))] if named else None
        mask = kind(dtype, *shape, dims=dims)  # type: ignore[operator]
        if dtype == BOOL:
            mask.data[..., 0] = True
        return case("y = Attention (q, k, v, m)", **_qkv(queries), m=mask)

    cases = [masked(kind, shape, named, (steps,) * 3) for kind in (steps, same) for shape in MASKS for named in (False, True)]
    check([*cases, *(masked(steps, shape, False, (same,) * 3) for shape in MASKS)], 23, empty=False)


def test_the_past_takes_the_steps_too() -> None:
    past = [(one(F32, B, H, 2, D), other(F32, B, H, 2, D)) for one, other in [(steps, steps), (same, same), (steps, same)]]
    cases = [case("y, a, b = Attention (q, k, v, , p, r)", **_qkv(), p=one, r=other) for one, other in past]
    check(cases, 23, empty=False)
    lengths = [given([3, K], I64), given([[1, 2], [3, 4], [5, 5]], I64, batched=True)]
    check([case("y = Attention (q, k, v, , , , n)", **_qkv(), n=one) for one in lengths], 24, empty=False)


def test_multi_head_attention() -> None:
    text = f"y = com.microsoft.MultiHeadAttention <num_heads={H}> (q, k, v{{}})"
    cases = [case(text.format(""), **_qkv(kinds, flat=True)) for kinds in KINDS]
    cases.append(case(text.format(", b"), **_qkv(flat=True), b=same(F32, 3 * H * D)))
    cases += [case(text.format(", , , a"), **_qkv(flat=True), a=kind(F32, *shape)) for kind in (steps, same) for shape in MASKS[3:]]
    check(cases, empty=False)
    padded = case(text.format(", , m"), **_qkv(flat=True), m=const(np.ones((B, K)), "int32"))
    assert refusal(padded) == "NO-BATCHING-RULE"
    assert refusal(case(text.format(", b"), **_qkv(flat=True), b=steps(F32, 3 * H * D))) == "BATCHED-WEIGHTS"


def test_rotary_embeddings() -> None:
    ids = given([[0, 1, 2, 3], [3, 2, 1, 0]], I64)
    ids_of_step = steps(I64, B, S, low=0, high=6)
    table, rows = (6, D // 2), (B, S, D // 2)
    cases = []
    for one, other in [(steps, same), (same, steps), (steps, steps)]:
        for shape, heads in [((B, H, S, D), ""), ((B, S, H * D), f"<num_heads={H}>")]:
            x = one(F32, *shape)
            cases.append(case(f"y = RotaryEmbedding {heads} (x, c, s)", x=x, c=other(F32, *rows), s=other(F32, *rows)))
            cases.append(case(f"y = RotaryEmbedding {heads} (x, c, s, i)", x=x, c=other(F32, *table), s=other(F32, *table), i=ids))
            if other is same:
                args = {"c": same(F32, *table), "s": same(F32, *table), "i": ids_of_step}
                cases.append(case(f"y = RotaryEmbedding {heads} (x, c, s, i)", x=x, **args))
    check(cases, 23, empty=False)
    both = case(
        "y = RotaryEmbedding (x, c, s, i)", x=steps(F32, B, H, S, D), c=steps(F32, *table), s=same(F32, *table), i=ids_of_step
    )
    assert refusal(both, 23) == "BATCHED-WEIGHTS"


def test_rotary_embeddings_of_contrib_models() -> None:
    table = {"c": same(F32, 6, D // 2), "s": same(F32, 6, D // 2)}
    text = "y = com.microsoft.RotaryEmbedding (x, i, c, s)"
    x = steps(F32, B, S, H * D)
    ids = [given([[0, 1, 2, 3], [3, 2, 1, 0]], I64), steps(I64, B, S, low=0, high=6), given([1], I64)]
    check([case(text, x=x, i=one, **table) for one in ids], empty=False)
    assert refusal(case(text, x=x, i=steps(I64, 1, low=0, high=2), **table)) == "NO-BATCHING-RULE"
    packed = case(text.replace("Embedding", "Embedding <is_packed_batching=1>"), x=x, i=ids[0], **table)
    assert refusal(packed) == "NO-BATCHING-RULE"
    assert refusal(case(text, x=x, i=ids[0], c=steps(F32, 6, D // 2), s=table["s"])) == "BATCHED-WEIGHTS"
