"""A model that declares all sizes of its inputs is static without being told again."""

import numpy as np
import pytest

import ortscan
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

STEP = "t = Tanh (a) q = Mul (s, t) s1 = Sub (q, a) o = Identity (s1)"
EXPANDED = f"""g (float[T,2,4] x, float[1,4] k) => (float[T,2,4] y) {{
    n = Shape (x) z = Constant <value_int = 0> () one = Constant <value_ints = [1]> () end = Constant <value_ints = [3]> ()
    rest = Slice (n, one, end) h = Expand (k, rest) m = Gather (n, z) c = Constant <value = bool {{1}}> ()
    l, y = Loop <body = b (int64 i, bool d, float[2,4] s) => (bool d1, float[2,4] s1, float[2,4] o) {{
        d1 = Identity (d) a = Gather (x, i) {STEP} }}> (m, c, h) }}"""
RESHAPED = f"""g (float[2,T,4] x, float[2,4] h) => (float[T,2,4] y) {{
    u = Transpose <perm = [1, 0, 2]> (x) n = Shape (u) r = Reshape (u, n)
    l, y = Scan <num_scan_inputs = 1, body = b (float[2,4] s, float[2,4] a) => (float[2,4] s1, float[2,4] o) {{ {STEP} }}> (h, r) }}"""
BY_SIZES = f"""g (float[T,2,4] x, float[2,4] h) => (float[T,2,4] y) {{
    n = Size (x) f = Cast <to = 1> (n) v = Mul (x, f)
    l, y = Scan <num_scan_inputs = 1, body = b (float[2,4] s, float[2,4] a) => (float[2,4] s1, float[2,4] o) {{ {STEP} }}> (h, v) }}"""
LOOPLESS = "g (float[T,4] x) => (float[T,4] y) { n = Shape (x) r = Reshape (x, n) y = Tanh (r) }"


def operators(model):
    return [node.op_type for node in model.graph.node]


def both(text):
    return model_from_text(text, 17), model_from_text(text.replace("[T,", "[5,").replace(",T,", ",5,"), 17)


@pytest.mark.parametrize("text", [EXPANDED, RESHAPED, BY_SIZES])
@pytest.mark.parametrize("target", ["cpu", "coreml"])
def test_declared_sizes_do_what_fixed_ones_do(text, target):
    free, static = both(text)
    sizes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in static.graph.input}
    after = ortscan.optimize(static, target=target)
    assert operators(after) == operators(ortscan.optimize(free, target=target, fix_shapes=sizes))
    assert not {"Shape", "Size", "Gather", "Constant"} & set(operators(after))
    assert ortscan.optimize(after, target=target) == after
    rng = np.random.default_rng(0)
    feeds = {name: rng.normal(size=dims).astype(np.float32) for name, dims in sizes.items()}
    assert_same_numbers(ort_run(after, feeds), ort_run(static, feeds))


def test_one_free_size_leaves_what_depends_on_it():
    free, _ = both(BY_SIZES)
    assert "Size" in operators(ortscan.optimize(free))


def test_a_static_model_without_loops_stays_as_it_is():
    _, static = both(LOOPLESS)
    assert operators(ortscan.optimize(static)) == operators(static)
