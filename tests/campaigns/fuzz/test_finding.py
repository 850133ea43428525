"""What is broken on purpose is found within a few models, and made small."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.cleanup import dead_code
from rewrites.fission.stacks import Stacks
from rewrites.graph.builder import Builder
from rewrites.loop_form import induction_states, one_trip
from tests.campaigns.fuzz.case import Case
from tests.campaigns.fuzz.judging import Judgement, judge
from tests.campaigns.fuzz.model_builder import draw_case
from tests.campaigns.fuzz.saving import load_failure, save_failure
from tests.campaigns.fuzz.shrink import count_nodes, shrunk
from tests.campaigns.fuzz.workers import Task, Workers

SEED, MODELS, SMALL = 15, 60, 20


class Here:
    """Judges in this process, where the defects are planted."""

    def judge(self, task: Task) -> Judgement:
        return judge(task.drawn())


def harmless(case: Case) -> Case | None:
    """The case at sizes that end no process; None where it may not run in this one."""
    feeds = [fed for fed in case.feeds[:2] if all(array.size for array in fed.values())]
    return replace(case, feeds=feeds, options={}) if len(feeds) == 2 else None


def first_bad(idiom: str) -> tuple[Case, Judgement]:
    for k in range(MODELS):
        case = harmless(draw_case(SEED, k, idiom=idiom))
        judgement = judge(case) if case is not None else None
        if case is not None and judgement is not None and judgement.verdict in ("wrong", "invalid", "foreign", "blamed"):
            return case, judgement
    raise AssertionError(f"nothing found in {MODELS} models")


def wrong_axis(build: Builder, value: ir.Value, axes: list[int]) -> ir.Value:
    return one_trip_unsqueeze(build, value, [axes[0] + 1] if value.shape is not None and len(value.shape) else axes)


one_trip_unsqueeze = one_trip.unsqueeze


def one_too_many(b: Builder, counter: Any, *rest: Any) -> ir.Value:
    return b.op("Add", counted(b, counter, *rest), b.const(np.array(1, counter.state.initial.dtype.numpy())))


counted = induction_states._emit_value_in_step


def in_the_same_order(stacks: Stacks, value: ir.Value, backwards: bool) -> ir.Value:
    return value


def failing(*_: Any) -> None:
    raise KeyError("planted")


DEFECTS: dict[str, tuple[Any, str, Callable[..., Any], str]] = {
    "a wrong axis": (one_trip, "unsqueeze", wrong_axis, "linear_recurrence"),
    "a count that is one off": (induction_states, "_emit_value_in_step", one_too_many, "counter"),
    "a lost direction": (Stacks, "ordered", in_the_same_order, "mapped"),
    "an exception": (dead_code.RULE, "check", failing, "running"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_planted_defect_is_found_and_made_small(monkeypatch, defect):
    place, name, broken, idiom = DEFECTS[defect]
    monkeypatch.setattr(place, name, broken)
    case, judgement = first_bad(idiom)
    small, again = shrunk(case, judgement, Here(), trials=160)
    assert again.verdict == judgement.verdict
    assert count_nodes(small.model) <= min(SMALL, count_nodes(case.model))


def test_a_process_that_dies_is_replaced_and_what_it_did_is_said():
    case = draw_case(SEED, 0)
    with Workers(1, limit=20) as workers:
        undrawn = workers.judge(Task(case=replace(case, feeds=[])))
        assert undrawn.verdict == "ok"
        workers._workers[0].process.kill()
        again = workers.judge(Task(SEED, 0))
        assert again.verdict in ("unfit", "ok")
        assert workers.judge(Task(SEED, 0)).verdict == "ok"


def test_a_failure_is_kept_with_all_that_shows_it(tmp_path):
    case = draw_case(SEED, 3, idiom="delay_line")
    folder = save_failure(tmp_path, case, Judgement("wrong", "as planted"), (case, Judgement("wrong", "as planted")))
    kept = load_failure(folder / "shrunk")
    assert kept.model == case.model
    assert kept.options == case.options
    for mine, theirs in zip(kept.feeds, case.feeds, strict=True):
        assert {name: array.tolist() for name, array in mine.items()} == {name: array.tolist() for name, array in theirs.items()}
