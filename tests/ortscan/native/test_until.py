"""Loops with a computed condition take as many steps as in onnxruntime, with and without the library."""

import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ortscan
from rewrites.native.plan import Storage
from tests.rewrites.native.typed_bodies import typed_feeds, typed_loop
from tests.support.native_plans import outputs_of, plan_session, run_native, session_of
from tests.support.plan_interpreter import run_plan
from tests.support.sample_plans import FIXED_STORAGES, counting
from tests.support.text import parsed


@pytest.mark.parametrize("storage", FIXED_STORAGES, ids=lambda storage: storage.name)
def test_condition_and_limit_end_the_loop(storage: Storage) -> None:
    for least, limit, on in itertools.product((-1, 0, 1, 62, 63, 64, 200), (-3, 0, 1, 2, 64, 65, 1000, 2**62), (False, True)):
        plan = counting(storage, least=least)
        given = [np.array(on), np.array([5, -5, 7]), np.array(limit)]
        got, wanted = run_native(plan, given), run_plan(plan, given)
        assert [each.shape for each in got] == [each.shape for each in wanted]
        assert len(wanted[1]) == (max(0, min(limit, max(1, least + 1))) if on else 0)
        assert all(np.array_equal(*pair) for pair in zip(got, wanted, strict=True))


def test_stacks_of_a_session_grow_and_are_reused() -> None:
    plan = counting(Storage.OUTPUT_ROWS, size=200, least=10**6)
    made = plan_session(plan, 3, outputs_of(plan))
    for limit in (3, 5000, 20000, 2, 0, 129):  # the third is too large to be kept
        given = [np.array(True), np.arange(200), np.array(limit)]
        final, stacked = made.run(None, {f"i{index}": each for index, each in enumerate(given)})
        sums = np.arange(limit).cumsum()
        assert np.array_equal(stacked, sums[:, None] + np.arange(200))
        assert np.array_equal(final, stacked[-1] if limit else given[1])


LIMITED = """
import resource
import numpy as np
from tests.support.native_plans import run_native
from tests.support.sample_plans import counting
size, rows = 1 << 22, 2
plan, given = counting(size=size, least=10**6), [np.array(True), np.zeros(size, np.int64), np.array(rows)]
run_native(counting(size=3), [given[0], given[1][:3], given[2]])
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 14 * 8 * size, resource.RLIM_INFINITY))
assert run_native(plan, given)[1][:, 0].tolist() == [0, 1]
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the memory of a process as Linux does")
def test_stacks_of_large_rows_need_little_more_memory_than_their_rows() -> None:
    """There is memory for 14 rows of 32 MiB, and the loop stacks two."""
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", LIMITED], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=True, timeout=120)


def test_one_session_runs_in_many_threads() -> None:
    plan = counting(size=20, least=10**6)
    made = plan_session(plan, 3, outputs_of(plan))

    def run(index: int) -> bool:
        limits = [(index * 37 + each * 61) % 300 for each in range(30)]
        runs = [made.run(None, {"i0": np.array(True), "i1": np.full(20, index), "i2": np.array(limit)}) for limit in limits]
        sums = [np.arange(limit).cumsum() + index for limit in limits]
        return all(np.array_equal(got[1], np.repeat(wanted[:, None], 20, 1)) for got, wanted in zip(runs, sums, strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_loops_of_all_types_keep_their_steps(first: int) -> None:
    plans = 0
    for seed in range(first, first + 10):
        model = typed_loop(seed)
        native = ortscan.optimize(model, native=True, verify=False)
        plans += any(function.name == "Loop1" for function in native.functions)
        sessions = [session_of(model, native=False), session_of(native, native=True), session_of(native, native=False)]
        for batch, steps in ((2, 3), (1, 0), (5, 100), (2, 1), (1, -4)):
            feeds = typed_feeds(model, seed, B=batch)
            if "M" in feeds:
                feeds["M"] = np.array(steps)
            wanted, *others = (each.run(None, feeds) for each in sessions)
            for got in others:
                for left, right in zip(got, wanted, strict=True):
                    np.testing.assert_allclose(left, right, rtol=1e-6 if left.dtype.kind == "f" else 0, atol=0, strict=True)
    assert plans > 2


NEWTON = """<ir_version: 10, opset_import: ["": 18]>
    g (float[N] s, float[N] w) => (float[N] z, int64 n) {
        one = Constant <value_int = 1> ()  none = Constant <value_int = 0> ()  on = Cast <to = 9> (one)
        z, n = Loop <body = b (int64 i, bool c, float[N] x, int64 k) => (bool c1, float[N] x1, int64 k1) {
            q = Div (w, x)  t = Add (q, x)  half = Constant <value_float = 0.5> ()  x1 = Mul (t, half)
            d = Sub (x1, x)  e = Abs (d)  m = ReduceMax <keepdims = 0> (e)  small = Constant <value_float = 0.001> ()
            c1 = Greater (m, small)  k1 = Add (k, one)
        }> (, on, s, none)
    }"""


def test_iteration_until_convergence() -> None:
    model = parsed(NEWTON)
    native = ortscan.optimize(model, native=True, verify=False)  # random numbers never settle
    assert [node.op_type for node in native.graph.node if node.domain] == ["Loop1"]
    sessions = [session_of(model, native=False), session_of(native, native=True), session_of(native, native=False)]
    for size in (1, 5, 33):
        feeds = {"s": np.full(size, 3, np.float32), "w": np.linspace(0.5, 900, size, dtype=np.float32)}
        (root, steps), *others = (each.run(None, feeds) for each in sessions)
        assert steps > 3
        assert all(np.array_equal(left, root) and right == steps for left, right in others)


def test_loop_without_a_plan_stays() -> None:
    grows = NEWTON.replace("x1 = Mul (t, half)", "y = Mul (t, half) x1 = Concat <axis = 0> (y, y)").replace(
        "float[N] x1", "float[M] x1"
    )
    grows = grows.replace("d = Sub (x1, x)", "d = Sub (y, x)").replace("float[N] z", "float[K] z")
    assert "Loop" in [node.op_type for node in ortscan.optimize(parsed(grows), native=True, verify=False).graph.node]
