"""The oracle against numbers worked out by hand, and against onnxruntime where that is right."""

import ml_dtypes
import numpy as np
import pytest

from tests.campaigns.fuzz.scan_cases import OPSETS, assert_same_as_steps, drawn_scans
from tests.campaigns.fuzz.unaliased import unaliased
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.text import model_from_text, ort_run

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
ONES = np.ones(2, np.float32)

BATCHED = """
g (int64[B] lengths, float[B,E] s0, float[B,T,E] x, float[B,T,E] w) => (float[B,E] s, float[B,T,E] y, float[B,T,F] z) {
    s, y, z = Scan <num_scan_inputs = 2, directions = [0, 1], body = step (float[E] h, float[E] xt, float[E] wt)
                    => (float[E] h1, float[E] yt, float[F] zt) {
        sum = Add (h, xt) h1 = Tanh (sum) yt = Mul (h1, wt) zt = Concat <axis = 0> (xt, wt)
    }> (lengths, s0, x, w)
}"""

AXES = """
g (float[2] s0, float[2,T] x, float[T,2] w, float[2] bias) => (float[2] s, float[2,T] y, float[T,2] z, float[T,4] c) {
    s, y, z, c = Scan <num_scan_inputs = 2, scan_input_axes = [{minus}1, 0], scan_input_directions = [1, 0],
                    scan_output_axes = [{minus}1, 0, 0], scan_output_directions = [1, 0, 1],
                    body = step (float[2] h, float[2] xt, float[2] wt)
                    => (float[2] h1, float[2] yt, float[2] zt, float[4] ct) {
        biased = Add (xt, bias) sum = Add (h, biased) h1 = Tanh (sum) yt = Mul (h1, wt) zt = Identity (xt)
        ct = Concat <axis = 0> (xt, wt)
    }> (s0, x, w)
}"""


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("lengths", [None, [3, 3], [1, 3], [2, 1]])
def test_batched_scans_agree_with_onnxruntime(lengths: list[int] | None) -> None:
    text = BATCHED if lengths else BATCHED.replace("int64[B] lengths, ", "").replace("(lengths, s0", '("", s0')
    feeds = {"s0": _random(2, 2), "x": _random(2, 3, 2), "w": _random(2, 3, 2)}
    if lengths:
        feeds["lengths"] = np.array(lengths)
    model = model_from_text(text, opset=8)
    assert_same_numbers(run_model(model, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("minus", ["", "-"])
@pytest.mark.parametrize("opset", [o for o in OPSETS if o > 8])
def test_scans_with_axes_and_directions_agree_with_onnxruntime(opset: int, minus: str) -> None:
    model = model_from_text(AXES.replace("{minus}", minus), opset)
    feeds = {"s0": _random(2), "x": _random(2, 4), "w": _random(4, 2), "bias": _random(2)}
    assert_same_numbers(run_model(model, feeds), ort_run(model, feeds))


@pytest.mark.parametrize("opset", OPSETS)
def test_random_scans_agree_with_onnxruntime(opset: int) -> None:
    for case in drawn_scans(20 if opset == 8 else 6, opset, "random_body", "passengers", aliased=opset % 2 == 0):
        assert_same_as_steps(case, unaliased(case.model) or case.model)


def test_lengths_freeze_states_zero_outputs_and_turn_only_the_valid_prefix() -> None:
    model = model_from_text(
        """g (int64[2] n, float[2,1] s0, float[2,3,1] x) => (float[2,1] s, float[2,3,1] y, bool[2,3,1] b, string[2,3] w) {
            s, y, b, w = Scan <num_scan_inputs = 1, directions = [1], body = step (float[1] h, float[1] xt)
                         => (float[1] h1, float[1] yt, bool[1] bt, string wt) {
                h1 = Add (h, xt) yt = Identity (h1) minus = Neg (xt) bt = Less (minus, xt)
                wt = Constant <value = string {"word"}> ()
            }> (n, s0, x)
        }""",
        opset=8,
        check=False,
    )
    feeds = {
        "n": np.array([2, 3]),
        "s0": np.array([[100], [0]], np.float32),
        "x": np.array([[[1], [2], [4]], [[1], [2], [4]]], np.float32),
    }
    s, y, b, w = run_model(model, feeds)
    np.testing.assert_array_equal(s, [[103], [7]])
    np.testing.assert_array_equal(y[..., 0], [[102, 103, 0], [4, 6, 7]])
    np.testing.assert_array_equal(b[..., 0], [[True, True, False], [True, True, True]])
    assert w.tolist() == [["word", "word", ""], ["word", "word", "word"]]


def test_a_body_output_that_is_an_input_is_that_input() -> None:
    model = model_from_text(
        """g (float[2] s0, float[3,2] x) => (float[2] s, float[3,2] before, float[3,2] same) {
            s, before, same = Scan <num_scan_inputs = 1, body = step (float[2] h, float[2] xt)
                              => (float[2] h1, float[2] h, float[2] xt) { h1 = Add (h, xt) }> (s0, x)
        }""",
        18,
    )
    s, before, same = run_model(model, {"s0": ONES, "x": X})
    np.testing.assert_array_equal(s, [10, 13])
    np.testing.assert_array_equal(before, [[1, 1], [2, 3], [5, 7]])
    np.testing.assert_array_equal(same, X)


def test_one_value_returned_twice_is_two_equal_outputs() -> None:
    model = model_from_text(
        """g (float[2] s0, float[3,2] x) => (float[2] s, float[3,2] y, float[3,2] z) {
            s, y, z = Scan <num_scan_inputs = 1, scan_output_directions = [0, 1], body = step (float[2] h, float[2] xt)
                      => (float[2] h1, float[2] h1, float[2] h1) { h1 = Add (h, xt) }> (s0, x)
        }""",
        18,
    )
    s, y, z = run_model(model, {"s0": ONES, "x": X})
    np.testing.assert_array_equal(s, [10, 13])
    np.testing.assert_array_equal(y, [[2, 3], [5, 7], [10, 13]])
    np.testing.assert_array_equal(z, y[::-1])


def test_states_returned_crosswise_change_places_at_every_step() -> None:
    model = model_from_text(
        """g (float[2] a0, float[2] b0, float[3,2] x) => (float[2] a, float[2] b) {
            a, b = Scan <num_scan_inputs = 1, body = step (float[2] a, float[2] b, float[2] xt)
                   => (float[2] b, float[2] a) { }> (a0, b0, x)
        }""",
        18,
        check=False,
    )
    a, b = run_model(model, {"a0": X[0], "b0": X[1], "x": X})
    np.testing.assert_array_equal(a, X[1])
    np.testing.assert_array_equal(b, X[0])


def test_a_scan_over_nothing_keeps_its_states_and_stacks_nothing() -> None:
    model = model_from_text(AXES.replace("{minus}", "-"), 18)
    feeds = {"s0": ONES, "x": np.zeros((2, 0), np.float32), "w": np.zeros((0, 2), np.float32), "bias": ONES}
    s, y, z, c = run_model(model, feeds)
    np.testing.assert_array_equal(s, ONES)
    assert (y.shape, z.shape, c.shape) == ((2, 0), (0, 2), (0, 4))
    assert y.dtype == np.float32


def test_a_batched_scan_over_nothing_keeps_its_states_and_stacks_nothing() -> None:
    model = model_from_text(BATCHED.replace("int64[B] lengths, ", "").replace("(lengths, s0", '("", s0'), opset=8)
    nothing = np.zeros((2, 0, 2), np.float32)
    s, y, z = run_model(model, {"s0": _random(2, 2), "x": nothing, "w": nothing})
    np.testing.assert_array_equal(s, _random(2, 2))
    assert (y.shape, z.shape) == ((2, 0, 0), (2, 0, 0))


def test_captures_reach_through_nested_bodies_and_branches() -> None:
    model = model_from_text(
        """g (float[2] s0, float[3,2] x, bool[3] flag, float k) => (float[2] s, float[3,2] y) {
            twice = Add (k, k)
            s, y = Scan <num_scan_inputs = 2, body = step (float[2] h, float[2] xt, bool f) => (float[2] h1, float[2] yt) {
                t, u = Scan <num_scan_inputs = 1, body = inner (float a, float e) => (float a1, float r) {
                    p = Mul (e, twice) a1 = Add (a, p) r = Sub (a1, k)
                }> (k, h)
                h1 = If (f) <then_branch = yes () => (float[2] q) { q = Add (u, xt) },
                             else_branch = no () => (float[2] q2) { q2 = Mul (xt, t) }>
                yt = Mul (h1, k)
            }> (s0, x, flag)
        }""",
        18,
    )
    feeds = {"s0": ONES, "x": X, "flag": np.array([True, False, True]), "k": np.array(0.5, np.float32)}
    results = run_model(model, feeds)
    # step 1: inner states 1.5, 2.5; h = [1, 2] + x. Step 2: inner state .5 + 2 + 4; h = x * 6.5. Step 3: as step 1.
    np.testing.assert_allclose(results[1] * 2, [[2.0, 4.0], [19.5, 26.0], [24.5, 51.5]])
    assert_same_numbers(results, ort_run(model, feeds))


LOOP = """
g ({inputs}float[2] s0) => (float[N] s, int64[M] counts) {
    limit = Constant <value = int64 {3}> () yes = Constant <value = bool {1}> ()
    s, counts = Loop <body = step (int64 i, bool go, float[2] h) => (bool more, float[2] h1, int64 n) {
        more = Less (i, limit) h1 = Add (h, s0) n = Identity (i)
    }> ({operands}, s0)
}"""


@pytest.mark.parametrize(
    ("inputs", "operands", "feeds", "trips"),
    [
        ("int64 m, bool c, ", "m, c", {"m": np.array(2), "c": np.array(True)}, 2),
        ("int64 m, bool c, ", "m, c", {"m": np.array(9), "c": np.array(True)}, 4),
        ("int64 m, bool c, ", "m, c", {"m": np.array(9), "c": np.array(False)}, 0),
        ("int64 m, bool c, ", "m, c", {"m": np.array(0), "c": np.array(True)}, 0),
        ("int64 m, bool c, ", "m, c", {"m": np.array(-1), "c": np.array(True)}, 0),
        ("bool c, ", '"", c', {"c": np.array(True)}, 4),
        ("int64 m, ", 'm, ""', {"m": np.array(9)}, 4),
        ("int64[1] m, ", "m, yes", {"m": np.array([3])}, 3),
    ],
)
def test_loops_end_by_trip_count_or_condition(inputs: str, operands: str, feeds: dict[str, np.ndarray], trips: int) -> None:
    model = model_from_text(LOOP.replace("{inputs}", inputs).replace("{operands}", operands), 18, check=False)
    feeds = {**feeds, "s0": ONES}
    s, counts = run_model(model, feeds)
    np.testing.assert_array_equal(s, ONES * (trips + 1))
    np.testing.assert_array_equal(counts, np.arange(trips))
    assert_same_numbers([s, counts], ort_run(model, feeds))


def test_loops_carry_sequences_and_growing_states() -> None:
    model = model_from_text(
        """g (int64 m, float[1,2] s0) => (float[K,2] grown, float[N,2] joined) {
            empty = SequenceEmpty <dtype = 1> ()
            items, grown = Loop <body = step (int64 i, bool go, seq(float[A,2]) list, float[L,2] h)
                           => (bool more, seq(float[A,2]) list1, float[P,2] h1) {
                more = Identity (go) h1 = Concat <axis = 0> (h, s0) list1 = SequenceInsert (list, h)
            }> (m, "", empty, s0)
            joined = ConcatFromSequence <axis = 0> (items)
        }""",
        18,
        check=False,
    )
    feeds = {"m": np.array(3), "s0": ONES[None]}
    grown, joined = run_model(model, feeds)
    assert (grown.shape, joined.shape) == ((4, 2), (6, 2))
    assert_same_numbers([grown, joined], ort_run(model, feeds))


def test_functions_and_nodes_out_of_order_are_no_obstacle() -> None:
    model = model_from_text(
        """<ir_version: 10, opset_import: ["": 18, "local": 1]>
        g (float[2] s0, float[3,2] x) => (float[2] s) { s = local.run <scale = 2.0> (s0, b)  b = Neg (x) }
        <opset_import: ["": 18], domain: "local"> run <scale> (a, b) => (s) {
            s = Scan <num_scan_inputs = 1, body = step (h, bt) => (h1) {
                k = Constant <value_float: float = @scale> () p = Mul (bt, k) h1 = Add (h, p)
            }> (a, b)
        }""",
        check=False,
    )
    (s,) = run_model(model, {"s0": ONES, "x": X})
    np.testing.assert_array_equal(s, [-17, -23])


def test_strings_truth_values_and_small_floats_are_scanned() -> None:
    model = model_from_text(
        """g (string[2] w0, bfloat16[3] x, string[3,2] words) => (string[2] w, bfloat16[3] y, float[3] z, bool[3,2] e) {
            w, y, z, e = Scan <num_scan_inputs = 2, body = step (string[2] v, bfloat16 xt, string[2] n)
                         => (string[2] v1, bfloat16 yt, float zt, bool[2] et) {
                v1 = Identity (n) yt = Identity (xt) zt = Cast <to = 1> (xt) et = Equal (v, n)
            }> (w0, x, words)
        }""",
        19,
    )
    words = np.array([["a", "b"], ["a", "c"], ["", "c"]])
    x = np.array([0.5, 1.5, -3], ml_dtypes.bfloat16)
    w, y, z, e = run_model(model, {"w0": np.array(["a", "x"]), "x": x, "words": words})
    assert w.tolist() == ["", "c"]
    assert y.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z, [0.5, 1.5, -3])
    np.testing.assert_array_equal(e, [[True, False], [True, False], [False, True]])
