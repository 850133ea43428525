"""Loops on float16 and bfloat16 are computed in float32; states and results are rounded after each step as before."""

import numpy as np
import pytest

from rewrites.graph.context import Options
from rewrites.native import float_loop, native_loop
from tests.rewrites.apply import apply, patches, reasons
from tests.support.native_plans import session_of
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal, model_from_text

NO_PLANS = Options(domains=frozenset())
SCAN = """g (float16[2] s, float16[3,2] xs, float16[2] w) => (float16[2] z, float16[3,2] ys) {
    z, ys = Scan <num_scan_inputs = 1, body = b (float16[2] h, float16[2] x) => (float16[2] h1, float16[2] y) {
        a = Mul (h, w) c = Add (a, x) h1 = Tanh (c) y = Exp (c)
    }> (s, xs) }"""
LOOP = """g (float16[2] s, int64 n, float16[5,2] xs) => (float16[2] z, float16[K,2] ys) <float16[2] k = {15360, 16896}> {
    z, ys = Loop (n, , s) <body = b (int64 i, bool c, float16[2] h) => (bool c1, float16[2] h1, float16[2] y)
        <float16[2] own = {14336, 16384}> {
        c1 = Identity (c) x = Gather (xs, i) j = Cast <to = 10> (i) half = Constant <value = float16 {14336}> ()
        e = Mul (x, own) f = Mul (k, e) d = Mul (j, half) g = Add (f, d) y = Add (g, h) h1 = Sin (y)
    }> }"""
FEEDS = {
    "s": np.float16([1, -2]),
    "xs": np.random.default_rng(0).normal(size=(5, 2)).astype(np.float16),
    "w": np.float16([0.5, 2]),
    "n": np.array(5),
}


def test_a_scan_on_float16_becomes_a_scan_on_float32_between_casts() -> None:
    feeds = {name: FEEDS[name][:3] for name in ("s", "xs", "w")}
    after, _ = apply(SCAN, [float_loop], feeds=feeds)
    assert_text_equal(
        after,
        """<ir_version: 10, opset_import: ["": 18]>
        g (float16[2] s, float16[3,2] xs, float16[2] w) => (float16[2] z, float16[3,2] ys) {
            w_1 = Cast <to = 1> (w) s_1 = Cast <to = 1> (s) xs_1 = Cast <to = 1> (xs)
            z_1, ys_1 = Scan <num_scan_inputs = 1, body = b (float[2] h, float[2] x) => (float[2] h2, float[2] y2) {
                a = Mul (h, w_1) c = Add (a, x) h1 = Tanh (c) y = Exp (c)
                h3 = Cast <to = 10> (h1) h2 = Cast <to = 1> (h3) y3 = Cast <to = 10> (y) y2 = Cast <to = 1> (y3)
            }> (s_1, xs_1)
            z = Cast <to = 10> (z_1) ys = Cast <to = 10> (ys_1)
        }""",
    )


@pytest.mark.parametrize(("text", "names"), [(SCAN, ("s", "xs", "w")), (LOOP, ("s", "n", "xs"))], ids=["Scan", "Loop"])
def test_it_has_a_plan_with_the_numbers_of_onnxruntime(text: str, names: tuple[str, ...]) -> None:
    feeds = {name: FEEDS[name] if text is LOOP or name != "xs" else FEEDS[name][:3] for name in names}
    after, report = apply(text, [float_loop, native_loop], feeds=feeds)
    assert patches(report) == ["float-loop", "native-loop"]
    assert_same_numbers(session_of(after, native=True).run(None, feeds), ort_run(model_from_text(text, 18), feeds))


def test_bfloat16_is_rounded_too() -> None:
    text = SCAN.replace("float16", "bfloat16")
    after, report = apply(text, [float_loop, native_loop])
    assert patches(report) == ["float-loop", "native-loop"]
    assert {node.op_type for node in after.graph.node} == {"Cast", "Scan1"}


def test_it_applies_once_and_only_to_such_loops() -> None:
    after, _ = apply(SCAN, [float_loop])
    assert not apply(after, [float_loop])[1].patches
    assert not apply(SCAN.replace("float16", "float"), [float_loop])[1].patches
    assert not apply(SCAN, [float_loop], options=NO_PLANS)[1].patches


@pytest.mark.parametrize(
    "node", ["c = RandomUniformLike <dtype = 10> (a)", "c = CastLike (a, x)"], ids=["random numbers", "a type by example"]
)
def test_nodes_that_create_float16_on_their_own_keep_the_loop(node: str) -> None:
    assert reasons(apply(SCAN.replace("c = Add (a, x)", node), [float_loop])[1]) == ["NATIVE-TYPE"]
