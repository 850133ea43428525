"""States that grow in each step have the same numbers as in onnxruntime, and plans that misuse them are refused."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import ortscan
from rewrites.native.plan import ONE, ZERO, Form, Input, InputKind, Output, Plan, PlanPack, PlanState, Size, Storage, Symbol
from tests.ortscan.native.test_refusals import FAILURES, refused, replaced
from tests.rewrites.native.typed_bodies import typed_feeds, typed_loop
from tests.support.growing_caches import beam_decoder, decoder, decoder_feeds
from tests.support.native_plans import outputs_of, plan_session, run_native, session_of
from tests.support.plan_interpreter import run_plan
from tests.support.sample_plans import growing


def given(rows: int, axis: int, length: int, limit: int) -> list[np.ndarray]:
    random = np.random.default_rng(length)
    shape = [2, 3]
    shape.insert(axis, length)
    cache, h = (random.standard_normal(each).astype(np.float32) for each in (shape, 6 * rows))
    return [np.array(True), h, cache, np.array(limit)]


@pytest.mark.parametrize("in_two", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_state_grows_along_each_axis(axis: int, in_two: bool) -> None:
    for rows, length, limit in itertools.product((1, 3), (0, 1, 5), (0, 1, 2, 70)):
        plan, inputs = growing(rows, axis, in_two=in_two), given(rows, axis, length, limit)
        got, wanted = run_native(plan, inputs), run_plan(plan, inputs)
        assert got[1].shape[axis] == length + rows * limit
        for left, right in zip(got, wanted, strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-5, atol=2e-5, strict=True)


def test_a_session_forgets_the_lengths_of_earlier_runs() -> None:
    plan = growing()
    session = plan_session(plan, 4, outputs_of(plan))
    for length, limit in ((3, 5), (3, 5), (0, 2), (700_000, 2), (8, 0), (3, 5)):
        inputs = given(1, 1, length, limit)
        got = session.run(None, {f"i{index}": each for index, each in enumerate(inputs)})
        for left, right in zip(got, run_plan(plan, inputs), strict=True):
            np.testing.assert_allclose(left, right, rtol=2e-5, atol=1e-4, strict=True)


LENGTH, AFTER = Size(1, (1, 0)), Size(1, (0, 1))
PLAN = growing()


def with_cache(state: PlanState = PLAN.states[2], dims: tuple[Size, ...] = PLAN.inputs[2].dims) -> dict[str, Any]:
    inputs = (*PLAN.inputs[:2], dataclasses.replace(PLAN.inputs[2], dims=dims), PLAN.inputs[3])
    return {"states": (*PLAN.states[:2], state), "inputs": inputs}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (with_cache(PlanState(Storage.GROWS, ONE, 1, 3)), "state 2 has storage 6"),
        (with_cache(PlanState(Storage.GROWS, ONE, 4, 1)), "state 2 is in region 4"),
        (with_cache(PlanState(Storage.GROWS_IN_TWO, ONE, 3, 1)), "state 2 is in region 3"),
        (with_cache(PlanState(Storage.GROWS, ZERO, 1, 1)), "symbol 1 is of an axis that does not grow"),
        (with_cache(PlanState(Storage.GROWS, Size(-1), 1, 1)), "state 2 cannot grow"),
        (with_cache(PlanState(Storage.GROWS, LENGTH, 1, 1)), "state 2 cannot grow"),
        (with_cache(PlanState(Storage.IN_PLACE, ZERO, 1)), "symbol 1 is of an axis that does not grow"),
        (with_cache(PlanState(Storage.GROWS, ONE, 1, 0)), "symbol 1 is of an axis that does not grow"),
        (with_cache(dims=(Size(2), Size(4), Size(3))), "the length of state 2 is not what it grows by"),
        (with_cache(dims=(Size(2), Size(2, (1, 0)), Size(3))), "the length of state 2 is not what it grows by"),
        (with_cache(dims=(Size(2), Size(1, (1, 1)), Size(3))), "the length of state 2 is not what it grows by"),
        (with_cache(dims=(Size(2), AFTER, Size(3))), "the length of state 2 is not what it grows by"),
        (with_cache(dims=(Size(2), LENGTH, LENGTH)), "axis 2 of input 2 changes in each step"),
        ({"symbols": (Symbol(2, 1), Symbol(2, -4))}, "symbol 1 is of no axis of its input"),
        ({"symbols": (Symbol(2, 1), Symbol(2, -1))}, "symbol 1 is of an axis that does not grow"),
        ({"states": (*PLAN.states[:1], PlanState(Storage.IN_PLACE, LENGTH), PLAN.states[2])}, "the offset of state 1 changes"),
        ({"inputs": (*PLAN.inputs, Input(InputKind.CAPTURED, (LENGTH,)))}, "axis 0 of input 4 changes in each step"),
        ({"outputs": (Output((Size(6, (0, 1)),)),)}, "the rows of output 0 change in each step"),
    ],
)
def test_a_plan_grows_only_what_can_grow(changes: dict[str, Any], why: str) -> None:
    plan = dataclasses.replace(PLAN, **changes)
    assert why in refused(plan, len(plan.inputs), 3)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"regions": (PLAN.regions[0], Size(6, (1, 0)), *PLAN.regions[2:])}, "state 2 reaches outside the workspace"),
        ({"regions": (*PLAN.regions[:3], Size(6, (1, 0)))}, "value 3 reaches outside its storage"),
        (
            {**with_cache(PlanState(Storage.GROWS_IN_TWO, ONE, 0, 1)), "regions": (Size(1000), *PLAN.regions[1:])},
            "two states overlap in the workspace",
        ),
        (with_cache(PlanState(Storage.GROWS_IN_TWO, ONE, 2, 1)), "value 3 overlaps a state"),
        (replaced(0, dims=(ONE, ONE, ONE, Size(7)))(PLAN), "operand 0 of instruction 0 reaches outside its value"),
    ],
)
def test_memory_of_a_state_that_grows_is_checked_in_each_run(changes: dict[str, Any] | Plan, why: str) -> None:
    plan = changes if isinstance(changes, Plan) else dataclasses.replace(PLAN, **changes)
    with pytest.raises(FAILURES, match=why):
        run_native(plan, given(1, 1, 32, 2))


def test_a_pack_does_not_grow_and_a_scan_has_no_state_that_grows() -> None:
    captured = dataclasses.replace(PLAN, inputs=(*PLAN.inputs, Input(InputKind.CAPTURED, (Size(3), Size(3)))))
    packs = (PlanPack(4, ZERO, LENGTH, Size(3), Size(3), ONE),)
    assert "pack 0 changes in each step" in refused(dataclasses.replace(captured, packs=packs), 5, 3)
    scan = dataclasses.replace(PLAN, form=Form.SCAN, inputs=(*PLAN.inputs[:3], Input(InputKind.SCANNED, ())))
    assert "state 2 cannot grow" in refused(scan, 4, 4)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_decoder_with_caches_becomes_a_plan(batch: int) -> None:
    model = decoder(batch)
    native = ortscan.optimize(model, native=True, verify=False)
    assert "Loop1" in [node.op_type for node in native.graph.node]
    sessions = [session_of(model, native=False), session_of(native, native=True), session_of(native, native=False)]
    for past, steps in itertools.product((0, 1, 20), (0, 1, 2, 30)):
        feeds = decoder_feeds(batch, past, steps)
        wanted, *others = (each.run(None, feeds) for each in sessions)
        for got in others:
            for left, right in zip(got, wanted, strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-3, atol=1e-4, strict=True)


@pytest.mark.parametrize("keep", ["before", "after"])
def test_beams_choose_among_the_rows_of_their_caches(keep: str) -> None:
    model = beam_decoder(keep)
    native = ortscan.optimize(model, native=True, verify=False)
    assert "Loop1" in [node.op_type for node in native.graph.node]
    sessions = [session_of(model, native=False), session_of(native, native=True)]
    lengths = set()
    for seed, steps in itertools.product(range(4), (1, 2, 25)):
        start = np.random.default_rng(seed).integers(0, 11, 4)
        wanted, got = (each.run(None, {"steps": np.array(steps), "t0": start}) for each in sessions)
        lengths.add(wanted[0].shape[1])
        np.testing.assert_array_equal(got[0], wanted[0], strict=True)
        for left, right in zip(got[1:], wanted[1:], strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4, strict=True)
    assert lengths > {1, 2}


@pytest.mark.long
def test_random_bodies_with_states_that_grow() -> None:
    plans = 0
    for seed in range(30):
        model = typed_loop(seed, growing=True)
        native = ortscan.optimize(model, native=True, verify=False)
        plans += any(function.name == "Loop1" for function in native.functions)
        sessions = [session_of(model, native=False), session_of(native, native=True)]
        for batch, steps, length in ((2, 3, 0), (1, 0, 2), (5, 80, 1), (1, -4, 5)):
            feeds = typed_feeds(model, seed, B=batch, L0=length, L1=length)
            if "M" in feeds:
                feeds["M"] = np.array(steps)
            wanted, got = (each.run(None, feeds) for each in sessions)
            for left, right in zip(got, wanted, strict=True):
                np.testing.assert_allclose(left, right, rtol=1e-6 if left.dtype.kind == "f" else 0, atol=0, strict=True)
    assert plans > 10
