"""Runs of plans: zero, one and many steps, backwards, in blocks, each storage of states, run-time sizes, many threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import onnxruntime as ort
import pytest

from rewrites.native.encoding import encode
from rewrites.native.operations import FLOAT, NARROW, NUMPY
from rewrites.native.plan import InputKind, Plan, Size, Storage
from tests.support.native_plans import library, outputs_of, plan_session, run_native
from tests.support.plan_interpreter import run_plan
from tests.support.sample_plans import FIXED_STORAGES, lstm, recurrence, sample_plans

STEPS = [0, 1, 2, 3, 4, 5, 200]


def inputs_of(plan: Plan, steps: int, seed: int = 0, symbols: tuple[int, ...] = ()) -> list[np.ndarray]:
    random = np.random.default_rng(seed)

    def number(size: Size) -> int:
        powers = zip(symbols, size.exponents or (0,) * len(symbols), strict=True)
        return size.coefficient * int(np.prod([symbol**power for symbol, power in powers]))

    shapes = [((steps,) if each.kind == InputKind.SCANNED else ()) + tuple(map(number, each.dims)) for each in plan.inputs]
    drawn = [np.asarray(random.standard_normal(shape) * 0.5) for shape in shapes]
    return [
        np.asarray(array * (1 if each.dtype == FLOAT else 20), {**NUMPY, **NARROW}[each.dtype])
        for array, each in zip(drawn, plan.inputs, strict=True)
    ]


def positive(array: np.ndarray) -> np.ndarray:
    """Return positive floats and nonzero integers, because plans may divide by them."""
    if array.dtype.kind == "f":
        return np.abs(array) + array.dtype.type(0.1)
    return np.where(array == 0, array.dtype.type(1), array) if array.dtype.kind == "i" else array


def session_of(plan: Plan) -> ort.InferenceSession:
    return plan_session(plan, len(plan.inputs), outputs_of(plan))


def feeds(inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
    return {f"i{index}": each for index, each in enumerate(inputs)}


def check(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert [each.shape for each in got] == [each.shape for each in wanted]
    for left, right in zip(got, wanted, strict=True):
        if right.dtype.kind != "f":
            np.testing.assert_array_equal(left, right, strict=True)
            continue
        written = ~np.isnan(right)  # the interpreter leaves NaN where nothing is written
        np.testing.assert_allclose(left[written], right[written], rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("storage", FIXED_STORAGES, ids=lambda storage: storage.name)
def test_each_state_storage_in_each_direction(storage: Storage, backwards: bool) -> None:
    for block, blocks_of_rows in [(1, False), (1, True), (2, True), (3, True), (7, False), (64, True)]:
        plan = recurrence(storage, backwards=backwards, block=block, blocks_of_rows=blocks_of_rows)
        session = session_of(plan)
        for steps in STEPS:
            given = inputs_of(plan, steps)
            check(session.run(None, feeds(given)), run_plan(plan, given))


def test_every_sample_runs_as_in_numpy() -> None:
    for plan in sample_plans():
        given = [positive(each) for each in inputs_of(plan, 2, symbols=(3,) * len(plan.symbols))]
        check(run_native(plan, given), run_plan(plan, given))


def test_sizes_are_resolved_for_each_run() -> None:
    plan = lstm(None, 5)
    session = session_of(plan)
    for batch in (1, 4, 4, 0, 2, 33, 1):
        for steps in (0, 1, 3):
            given = inputs_of(plan, steps, symbols=(batch,))
            check(session.run(None, feeds(given)), run_plan(plan, given))


def test_constant_weights_are_packed_once_and_others_in_each_run() -> None:
    plan = lstm(Size(3), 6)
    given = inputs_of(plan, 4)
    wanted = run_plan(plan, given)
    check(run_native(plan, given), wanted)
    check(run_native(plan, given, constants=[3]), wanted)
    session = session_of(plan)
    session.run(None, feeds([*given[:3], given[3] * 2]))
    check(session.run(None, feeds(given)), wanted)


def test_one_session_runs_in_many_threads() -> None:
    plan = lstm(None, 16)
    session = session_of(plan)
    given = [inputs_of(plan, 50 + seed, seed, (1 + seed % 3,)) for seed in range(8)]
    wanted = [session.run(None, feeds(each)) for each in given]

    def run(index: int) -> bool:
        got = [session.run(None, feeds(given[index])) for _ in range(40)]
        return all(np.array_equal(left, right) for each in got for left, right in zip(each, wanted[index], strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_the_library_is_registered_many_times_from_many_threads() -> None:
    plan = recurrence(Storage.IN_PLACE)
    given = inputs_of(plan, 3)
    wanted = run_native(plan, given)
    start = threading.Barrier(8)

    def run(_: int) -> bool:
        start.wait()
        options = ort.SessionOptions()
        for _again in range(5):
            options.register_custom_ops_library(str(library()))
            options = ort.SessionOptions()
        return all(np.array_equal(*pair) for pair in zip(run_native(plan, given), wanted, strict=True))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def refusal_of(plan: Plan) -> str | None:
    try:
        session_of(plan)
    except Exception as error:
        return str(error)
    return None


def test_each_instruction_set_of_this_machine_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [lstm(Size(3), 20), recurrence(Storage.TWO_ROWS), *sample_plans()]
    given = [[positive(each) for each in inputs_of(plan, 3, symbols=(3,) * len(plan.symbols))] for plan in plans]
    wanted = [run_plan(plan, each) for plan, each in zip(plans, given, strict=True)]
    tried = []
    for name in ("x86_64", "x86_64_v3", "x86_64_v4", "generic"):
        monkeypatch.setenv("ORTSCAN_ISA", name)
        if refusal_of(plans[0]) is None:
            tried.append(name)
            for plan, each, right in zip(plans, given, wanted, strict=True):
                check(run_native(plan, each), right)
    assert tried


def test_missing_instruction_set_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTSCAN_ISA", "z80")
    assert "ORTSCAN_ISA names no instruction set of this machine" in str(refusal_of(recurrence(Storage.IN_PLACE)))


def test_plans_are_small() -> None:
    assert all(300 < len(encode(plan)) < 4000 for plan in sample_plans())


def test_session_infers_the_rank_of_each_output() -> None:
    plan = recurrence(Storage.OUTPUT_ROWS)
    one, thirteen = Size(1), Size(13)
    plan = replace(
        plan,
        inputs=(replace(plan.inputs[0], dims=(one, thirteen, one)), plan.inputs[1]),
        outputs=(plan.outputs[0], replace(plan.outputs[1], dims=(thirteen, one))),
    )
    shapes = [each.shape for each in session_of(plan).get_outputs()]
    assert [shape[stacked:] for stacked, shape in zip((0, 1, 1), shapes, strict=True)] == [[1, 13, 1], [13], [13, 1]]
    assert len({shapes[1][0], shapes[2][0]}) == 2, "sizes known in a run alone have names of their own"
