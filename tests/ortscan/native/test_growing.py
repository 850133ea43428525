"""States that grow in each step have the same numbers as in onnxruntime, and plans that misuse them are refused."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

import ortscan
from rewrites.native.plan import ONE, ZERO, Form, Input, InputKind, Output, PlanPack, PlanState, Size, Storage, Symbol
from tests.ortscan.native.test_refusals import FAILURES, refused
from tests.support.growing_caches import decoder, decoder_feeds
from tests.support.native_plans import outputs_of, plan_session, run_native, session_of
from tests.support.plan_interpreter import run_plan
from tests.support.sample_plans import growing


def given(rows: int, axis: int, length: int, limit: int) -> list[np.ndarray]:
    random = np.random.default_rng(length)
    shape = [2, 3]
    shape.insert(axis, length)
    cache, h = (random.standard_normal(each).astype(np.float32) for each in (shape, 6 * rows))
    return [np.array(True), h, cache, np.array(limit)]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_state_grows_along_each_axis(axis: int) -> None:
    for rows, length, limit in itertools.product((1, 3), (0, 1, 5), (0, 1, 2, 70)):
        plan, inputs = growing(rows, axis), given(rows, axis, length, limit)
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
        (with_cache(PlanState(Storage.GROWS, ONE, 3, 1)), "state 2 is in region 3"),
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
        ({"regions": (*PLAN.regions[:1], Size(6, (1, 0)), PLAN.regions[2])}, None),
    ],
)
def test_a_plan_grows_only_what_can_grow(changes: dict[str, Any], why: str | None) -> None:
    plan = dataclasses.replace(PLAN, **changes)
    if why is not None:
        assert why in refused(plan, len(plan.inputs), 3)
        return
    with pytest.raises(FAILURES, match=r"outside (its storage|the workspace)"):  # there is no room for the new row
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
