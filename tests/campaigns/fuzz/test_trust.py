"""Which answers of onnxruntime are guesses of its own."""

import numpy as np

from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.judging import judge
from tests.campaigns.fuzz.trust import is_shaky, session_of
from tests.support.runtime import run_session
from tests.support.text import model_from_text

CONTRADICTED = """<ir_version: 9, opset_import: ["": 14]>
g (float[T,2,4] x) => (float[?,?,?] ys) <int64 first = {0}, int64[1] one = {1}> {
  n = Shape (x) t = Gather (n, first) more = Less (first, t)
  k, ys = Loop (t, more, first) <body = b (int64 i, bool c, int64 p) => (bool c1, int64 p1, float[2,3] y) {
    unread = Constant <value_float = 1.0> () step = Identity (i)
    r = Gather (x, i) u = Unsqueeze (r, one) y = ReduceSumSquare <axes = [-1], keepdims = 0> (u) p1 = Add (p, step) c1 = Identity (c) }>
}"""


def test_sizes_that_a_body_declares_against_its_operators_are_guesses_where_there_is_no_step() -> None:
    model = model_from_text(CONTRADICTED, check=False)
    nothing = {"x": np.zeros((0, 2, 4), np.float32)}
    shapes = {run_session(session_of(model.SerializeToString(), plain=plain), nothing)[0].shape for plain in (True, False)}
    assert shapes == {(0, 2, 0), (0, 2, 1)}
    case = Case(model, [{"x": np.ones((2, 2, 4), np.float32)}, nothing], "optimize", {})
    assert judge(case).verdict == "ok"


NOISE = """<ir_version: 8, opset_import: ["": 17]> g (float[9] x) => (float y) <float zero = {0}, float one = {1}> {
    m = ReduceMean (x) d = Sub (x, m) s = ReduceSum <keepdims = 0> (d) c = Greater (s, zero) k = Cast <to = 1> (c) y = Sub (k, one) }"""


def test_what_the_sign_of_rounding_alone_decides_is_noise_though_it_seldom_moves() -> None:
    model = model_from_text(NOISE)
    session = session_of(model.SerializeToString())
    shaky = []
    for seed in range(20):
        feeds = {"x": np.random.default_rng(seed).standard_normal(9).astype(np.float32)}
        (before,) = run_session(session, feeds)
        shaky.append(is_shaky(Case(model, [feeds], "optimize", {}), session, feeds, [before], [-1 - before]))
    assert all(shaky)


STOPPED = """g (float[2] s) => (float[2] z, float[1] ys) <int64 most = {5}, bool go = {0}> {
  z, ys = Loop (most, go, s) <body = b (int64 i, bool c, float[2] h) => (bool c1, float[2] h1, float y) {
    h1 = Tanh (h) y = ReduceSum <keepdims = 0> (h) c1 = Identity (c) }> }"""


def test_a_wrong_size_of_an_output_that_is_empty_in_every_run_may_be_corrected() -> None:
    case = Case(model_from_text(STOPPED, 18), [{"s": np.ones(2, np.float32)}], "optimize", {})
    assert judge(case).verdict == "ok"


MEAN_OF_NOTHING = """g (float[T,2] x, float[2,N] w, int64 t) => (float[?,?] m) <bool go = {1}> {
  ys = Loop (t, go) <body = b (int64 i, bool c) => (bool c1, float[?] y) {
    r = Gather (x, i) y = MatMul (r, w) c1 = Identity (c) }>
  m = ReduceMean <axes = [0]> (ys) }"""


def test_the_mean_of_a_loop_without_steps_may_have_more_elements_than_onnxruntime_guesses() -> None:
    model = model_from_text(MEAN_OF_NOTHING, 13, check=False)
    feeds = {"x": np.zeros((0, 2), np.float32), "w": np.ones((2, 2), np.float32), "t": np.array(0)}
    session = session_of(model.SerializeToString())
    (before,) = run_session(session, feeds)
    case = Case(model, [feeds], "optimize", {})
    assert is_shaky(case, session, feeds, [before], [np.full((1, 2), np.nan, np.float32)])
    assert not is_shaky(case, session, feeds, [before], [np.array([[np.nan, 0]], np.float32)])
