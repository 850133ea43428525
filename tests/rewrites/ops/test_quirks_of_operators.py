"""What is wrong with onnxruntime's kernels is still wrong."""

import numpy as np
import pytest

from tests.support.quirks import dies, fate_of, gives, model, ones, refuses, run, shows, unwritten

_SECONDS = 1.0
_LEAST = {"int32": -(2**31), "int64": -(2**63)}


@shows("ORT-EINSUM-OF-NOTHING")
def test_an_einsum_has_operands_without_elements() -> bool:
    text = 'g (float[A,B,C] x) => (float[A,B,B] y) { y = Einsum <equation = "bij,bkj->bik"> (x, x) }'
    return dies(model(text), {"x": ones(0, 2, 3)})


@shows("ORT-UNIQUE-OF-NOTHING")
def test_rows_without_elements_are_told_apart() -> bool:
    return dies(model("g (float[A,B] x) => (float[N,B] y) { y = Unique <axis = 0> (x) }"), {"x": ones(2, 0)})


@shows("ORT-CONV-EMPTY-FILTER")
def test_a_filter_has_no_rows() -> bool:
    proto = model("g (float[A,B,C] x, float[D,B,E] w) => (float[?,?,?] y) { y = Conv (x, w) }")
    assert fate_of(run, proto.SerializeToString(), {"x": ones(1, 1, 2), "w": ones(1, 1, 1)}).result is not None
    return fate_of(run, proto.SerializeToString(), {"x": ones(1, 1, 2), "w": ones(1, 1, 0)}, seconds=_SECONDS).hangs


@shows("ORT-WHERE-MINUS-ZERO")
def test_minus_zero_is_chosen() -> bool:
    proto = model("g (bool[1] c, float[1] x, float[1] y) => (float[1] z) { z = Where (c, x, y) }")
    minus, one = np.array([-0.0], np.float32), ones(1)
    second, third = (
        run(proto.SerializeToString(), {"c": np.array([c]), "x": x, "y": y})
        for c, x, y in ((True, minus, one), (False, one, minus))
    )
    return bool(np.signbit(third[0]).all()) and not np.signbit(second[0]).any()


@shows("ORT-LAYERNORM-EMPTY-NAME")
def test_the_last_name_of_a_layer_normalization_is_empty() -> bool:
    proto = model("g (float[2,3] x, float[3] w) => (float[2,3] y) { y = LayerNormalization (x, w) }")
    proto.graph.node[0].input.append("")
    return dies(proto, {"x": ones(2, 3), "w": ones(3)})


@pytest.mark.parametrize("kind", _LEAST)
@shows("ORT-DIVISION-OVERFLOW")
def test_the_least_number_is_divided_by_minus_one(kind: str) -> bool:
    proto = model(f"g ({kind}[1] x, {kind}[1] b) => ({kind}[1] y) {{ y = Div (x, b) }}")
    return dies(proto, {"x": np.array([_LEAST[kind]], kind), "b": np.array([-1], kind)})


@shows("ORT-GATHER-STRINGS")
def test_rows_of_strings_are_gathered() -> bool:
    words = np.array([["a", "b"], ["c", "d"], ["e", "f"]], object)
    (row,) = gives(model("g (string[3,2] x, int64 i) => (string[2] y) { y = Gather (x, i) }"), {"x": words, "i": np.array(1)})
    return row.tolist() == ["c", ""]


@pytest.mark.parametrize("kind", _LEAST)
@shows("ORT-REDUCED-INTEGERS")
def test_a_sum_of_integers_is_more_than_there_is(kind: str) -> bool:
    proto = model(
        f"g ({kind}[2] x) => ({kind} y, {kind}[1] z) {{ y = ReduceSum <keepdims = 0> (x) a, b = Split <num_outputs = 2> (x) z = Add (a, b) }}"
    )
    y, z = gives(proto, {"x": np.array([-1 - _LEAST[kind], 1], kind)})
    return z.tolist() == [_LEAST[kind]] and y == -1 - _LEAST[kind]


@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
@shows("ORT-REDUCED-NAN")
def test_the_largest_of_numbers_and_nan(operator: str) -> bool:
    proto = model(f"g (float[3,2] x) => (float[2] y) <int64[1] a = {{0}}> {{ y = {operator} <keepdims = 0> (x, a) }}")
    (found,) = gives(proto, {"x": np.array([[1, np.nan], [np.nan, 1], [2, 2]], np.float32)})
    return np.isnan(found).tolist() == [False, True]


@shows("ORT-LOGSOFTMAX-NAN")
def test_a_logarithm_of_a_share_is_beside_nan() -> bool:
    proto = model("g (double[1,3] x) => (double[1,3] y) { y = LogSoftmax (x) }")
    return not np.isnan(gives(proto, {"x": np.array([[1, np.nan, 1]])})[0]).all()


@shows("ORT-CLIP-HALF")
def test_infinity_is_clipped_where_there_is_no_bound() -> bool:
    text = "g (float16[1] x, float16 z) => (float16[1] y) { y = Clip (x, z) }"
    feeds = {"x": np.array([np.inf], np.float16), "z": np.array(0, np.float16)}
    assert np.isinf(gives(model(text, 11), feeds)[0]).all()
    return gives(model(text, 12), feeds)[0].tolist() == [65504]


@shows("ORT-LOG-SUM-EXP-28")
def test_the_logarithm_of_a_sum_of_powers_overflows() -> bool:
    text = "g (float[2] x) => (float[1] y) { y = ReduceLogSumExp (x) }"
    x = {"x": np.array([1e4, 1], np.float32)}
    assert gives(model(text, 27), x)[0].tolist() == [1e4]
    return bool(np.isinf(gives(model(text, 28), x)[0]).all())


@shows("ORT-LOG-SUM-EXP-FIRST")
def test_the_first_number_of_a_row_is_infinite() -> bool:
    x = {"x": np.array([[-np.inf, -1e4]], np.float32)}
    whole, rows = (
        gives(model(f"g (float[1,2] x) => (float[1,1] y) {{ y = ReduceLogSumExp {axes} (x) }}", 13), x)[0]
        for axes in ("", "<axes = [1]>")
    )
    assert whole.tolist() == [[-1e4]]
    return bool(np.isneginf(rows).all())


@shows("ORT-ATTENTION-SCORES")
def test_scores_of_masked_positions_are_finite() -> bool:
    text = """g (float[1,1,2,2] q) => (float[1,1,2,2] y, float[1,1,2,2] s) {
        y, , , s = Attention <is_causal = 1, qk_matmul_output_mode = 2> (q, q, q) }"""
    before, after = (gives(model(text, opset), {"q": ones(1, 1, 2, 2)})[1] for opset in (24, 25))
    assert np.isneginf(after[0, 0, 0, 1])
    return bool(np.isfinite(before).all())


@shows("ORT-CONCAT-MISFIT")
def test_what_has_no_elements_is_counted_in_a_concat() -> bool:
    text = "g (float[A,B] x, float[C,D] u) => (float[?,?] y) { y = Concat <axis = 0> (x, u) }"
    return unwritten(model(text), {"x": ones(1000, 0), "u": ones(2, 3)}) == {0}


@shows("ORT-PAD-WRAP-OF-NOTHING")
def test_a_pad_wraps_nothing() -> bool:
    text = 'g (float[T,2] x) => (float[?,?] y) <int64[4] a = {0,1,0,1}> { y = Pad <mode = "wrap"> (x, a) }'
    assert gives(model(text), {"x": ones(1, 2)})[0].shape == (1, 4)
    return refuses(model(text), {"x": ones(0, 2)}, "Unexpected mode")


@shows("ORT-GROUPNORM-OF-NOTHING")
def test_groups_of_no_rows_are_normalised() -> bool:
    proto = model("g (float[T,4,3] x, float[4] s) => (float[T,4,3] y) { y = GroupNormalization <num_groups = 2> (x, s, s) }", 21)
    assert gives(proto, {"x": ones(1, 4, 3), "s": ones(4)})[0].shape == (1, 4, 3)
    return refuses(proto, {"x": ones(0, 4, 3), "s": ones(4)}, "Reshape")


@shows("ORT-ATTENTION-OF-NOTHING")
def test_no_rows_are_attended_to() -> bool:
    proto = model("g (float[A,2,3,4] q) => (float[?,?,?,?] y) { y = Attention (q, q, q) }", 23)
    assert gives(proto, {"q": ones(1, 2, 3, 4)})[0].shape == (1, 2, 3, 4)
    return refuses(proto, {"q": ones(0, 2, 3, 4)}, "running Attention node")


@shows("ORT-RESIZE-AXES")
def test_three_axes_of_four_are_interpolated() -> bool:
    text = 'g (float[2,2,2,2] x) => (float[?,?,?,?] y) <float[4] s = {1,2,2,2}> { y = Resize <mode = "linear"> (x, , s) }'
    return refuses(model(text), {"x": ones(2, 2, 2, 2)}, "upsamplebase")


@pytest.mark.parametrize("kind", ["bool", "int16", "uint16", "uint64", "bfloat16"])
@shows("ORT-WHERE-TYPES")
def test_a_choice_is_between_numbers_of_this_type(kind: str) -> bool:
    proto = model(f"g (bool c, {kind}[2] x) => ({kind}[2] y) {{ y = Where (c, x, x) }}")
    return refuses(proto, {"c": np.array(True)}, "Could not find an implementation for Where")


@shows("ORT-NODE-NAMES")
def test_two_nodes_have_one_name() -> bool:
    proto = model("g (float[2] x) => (float[2] z) { y = Neg (x) z = Abs (y) }")
    for node in proto.graph.node:
        node.name = "same"
    return refuses(proto, {"x": ones(2)}, "two nodes with same node name")
