"""The engine's promises: a fixpoint, a bound, a count of patches, invariants in between, and a report that says why."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from rewrites.base.errors import InvariantBroken
from rewrites.cleanup import dead_code, identities, unused_results
from rewrites.driver import engine
from rewrites.driver.engine import count_operators, rewrite
from rewrites.graph.context import Context
from rewrites.loops import Loop
from rewrites.registry import ON_REQUEST, RULES
from rewrites.repair import own_outputs
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule
from tests.rewrites.apply import apply, patches, prepared, reasons
from tests.rewrites.fission.harness import data
from tests.rewrites.harness import loop, scan
from tests.support.runtime import ort_run
from tests.support.text import normalised

DEFAULT = [each for each in RULES if each not in ON_REQUEST]
PLAIN = scan("h1 = Add (h, x) y = Tanh (h)")
BUSY = scan("a = Identity (x) d = Exp (a) e = Identity (h) h1 = Add (e, a) y = Tanh (e)")
NESTED = scan(
    "h1 = Add (h, x) d = Exp (x) y = Scan <num_scan_inputs = 1, body = inner (float[2] g, float[2] e) => (float[2] g1) "
    "{ d2 = Exp (e) g1 = Add (g, e) }> (h, xs)"
)


def rule(name: str, check: Callable[[Loop, Context], Patch | NotApplicable]) -> Rule[Loop]:
    return Rule(name, "cleanup", "loop", check)


def always(name: str, edit: Callable[[Loop, Context], Any] = lambda loop, ctx: [loop.node]) -> Rule[Loop]:
    return rule(name, lambda loop, ctx: Patch("did it", lambda: edit(loop, ctx)))


def test_rules_are_applied_until_none_fires() -> None:
    _, report = apply(BUSY, [dead_code, identities])
    assert sorted(patches(report)) == ["dead-code", "identities"]
    _after, report = apply(apply(BUSY, [dead_code, identities])[0], [dead_code, identities])
    assert patches(report) == []


def test_the_first_rule_that_fires_starts_the_row_again() -> None:
    asked: list[str] = []
    first = rule("first", lambda loop, ctx: asked.append("first") or NOTHING_HERE)
    last = rule("last", lambda loop, ctx: asked.append("last") or NOTHING_HERE)
    apply(scan("d = Exp (x) h1 = Add (h, x) y = Tanh (h)"), [first, dead_code, last])
    assert asked[:3] == ["first", "first", "last"]


def test_rules_share_a_view_until_what_it_is_made_of_changes() -> None:
    seen: list[Loop] = []

    def look(loop: Loop, ctx: Context) -> NotApplicable:
        seen.append(loop)
        return NOTHING_HERE

    def turn(loop: Loop, ctx: Context) -> NotApplicable:
        loop.body.outputs[:] = loop.body.outputs[::-1]
        return NOTHING_HERE

    apply(PLAIN, [rule("one", look), rule("other", look), rule("turns outputs round", turn), rule("last", look)])
    assert seen[0] is seen[1]
    assert seen[2] is not seen[1]
    assert seen[2].scan_outputs[0].inner is seen[0].states[0].next


def test_a_rule_that_never_ends_is_a_reason_not_a_hang() -> None:
    _, report = apply(PLAIN, [always("for ever")])
    assert reasons(report) == ["RULE-LIMIT"]
    assert len(report.patches) == 200


def test_rules_that_fire_once_in_every_sweep_are_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def now_and_then(loop: Loop, ctx: Context) -> Patch | NotApplicable:
        seen.append(True)
        return Patch("did it", lambda: [loop.node]) if len(seen) % 2 else NOTHING_HERE

    monkeypatch.setattr(engine, "_SWEEPS", 5)
    _, report = apply(NESTED, [rule("now and then", now_and_then)])
    assert len(report.patches) == 10
    assert "RULE-LIMIT" in reasons(report)


def test_a_loop_is_looked_at_again_only_where_something_next_to_it_has_changed() -> None:
    asked: list[str | None] = []

    def look(loop: Loop, ctx: Context) -> NotApplicable:
        asked.append(loop.node.outputs[0].name)
        return NOTHING_HERE

    body = "<num_scan_inputs = 1, body = b{0} (float[2] h{0}, float[2] x{0}) => (float[2] g{0}) {{ {1} g{0} = Add (h{0}, x{0}) }}>"
    first, second = (body.format(i, "d = Exp (x1)" if i else "") for i in range(2))
    given, results = "float[2] s, float[3,2] xs, float[2] t, float[3,2] us", "float[2] y, float[2] z"
    apart = f"g ({given}) => ({results}) {{ y = Scan {first} (s, xs) z = Scan {second} (t, us) }}"
    apply(apart, [rule("looks", look), dead_code])
    assert asked == ["y", "z", "z"]
    asked.clear()
    apply(apart.replace("(t, us)", "(y, us)"), [rule("looks", look), dead_code])
    assert asked == ["y", "z", "z", "y"]


@pytest.mark.parametrize("count", range(4))
def test_stop_after_applies_that_many_patches(count: int) -> None:
    text = scan("a = Identity (x) d = Exp (a) h1 = Add (h, a) y = Tanh (h)", results="float[2] z")
    model, whole = apply(text, [identities, unused_results, dead_code])
    assert len(whole.patches) == 2
    _after, report = apply(text, [identities, unused_results, dead_code], stop_after=count, feeds=data(model))
    assert patches(report) == patches(whole)[:count]
    assert report.changed == (count > 0)


def test_stop_after_0_changes_nothing() -> None:
    untouched, report = apply(BUSY, RULES, stop_after=0)
    assert not report.changed
    assert [one.fate for one in report.loops] == ["kept"]
    assert normalised(untouched) == normalised(apply(BUSY, [])[0])


def test_patches_are_numbered_over_the_whole_run() -> None:
    _, report = apply(NESTED, [dead_code])
    assert [(fired.number, fired.rule, fired.loop) for fired in report.patches] == [
        (1, "dead-code", "main/Scan producing 'z'/Scan producing 'y'"),
        (2, "dead-code", "main/Scan producing 'z'"),
    ]
    assert [one.fired for one in report.loops] == [report.patches[:1], report.patches[1:]]


def test_debug_checks_the_invariants_after_each_patch_and_names_it() -> None:
    def break_it(loop: Loop, ctx: Context) -> list[ir.Node]:
        next(iter(loop.body)).outputs[0].name = "h"
        return [loop.node]

    ctx = prepared(PLAIN)
    with pytest.raises(
        InvariantBroken, match=r"after patch 1 \(vandal on main/Scan producing 'z'\): the name 'h' is defined twice"
    ):
        rewrite(ctx, [always("vandal", break_it)], debug=True)
    assert rewrite(prepared(PLAIN), [always("vandal", break_it)]).patches


def test_the_report_says_why_each_other_rule_did_not_fire() -> None:
    silent = rule("silent", lambda loop, ctx: NOTHING_HERE)
    first = rule("first", lambda loop, ctx: NotApplicable("CODE-1", f"'{loop.states[0].inner.name}' is in the way"))
    second = rule("second", lambda loop, ctx: NotApplicable("CODE-2"))
    _, report = apply(PLAIN, [silent, first, second])
    (entry,) = report.loops
    assert [(reason.rule, reason.code, reason.detail) for reason in entry.reasons] == [
        ("first", "CODE-1", "'h' is in the way"),
        ("second", "CODE-2", ""),
    ]
    assert (entry.where, entry.kind, entry.steps, entry.fate) == ("main/Scan producing 'z'", "Scan", 3, "kept")
    assert (entry.nodes_before, entry.nodes_after) == (2, 2)


def test_reasons_are_those_of_the_loop_as_it_is_left() -> None:
    def has_copies(loop: Loop, ctx: Context) -> NotApplicable:
        return NotApplicable("COPIES") if any(node.op_type == "Identity" for node in loop.body) else NotApplicable("NO-COPIES")

    _, report = apply(BUSY, [rule("look", has_copies), identities])
    assert reasons(report) == ["NO-COPIES"]


def test_a_loop_that_is_gone_needs_no_reasons() -> None:
    _, report = apply(
        scan("h1 = Add (h, x) y = Tanh (h)", results="float[2] r", after="r = Neg (s)"),
        [rule("no", lambda loop, ctx: NotApplicable("NO")), unused_results],
    )
    (entry,) = report.loops
    assert (entry.fate, entry.nodes_after, entry.reasons, [fired.rule for fired in entry.fired]) == (
        "removed",
        0,
        [],
        ["unused-results"],
    )
    assert not report.loops_left


def fate(text: str, rules: list[Rule[Any]]) -> tuple[str, int, int]:
    (entry,) = apply(text, rules)[1].loops
    return entry.fate, entry.nodes_before, entry.nodes_after


def test_the_fate_of_a_loop_says_what_happened() -> None:
    assert fate(PLAIN, [dead_code]) == ("kept", 2, 2)
    assert fate(BUSY, [dead_code]) == ("reduced", 5, 4)
    swapped = scan("a = Exp (x) h1 = Sub (a, h) y = Identity (h1)", results="float[2] z, float[3,2] ys")
    assert fate(swapped, DEFAULT) == ("reduced", 3, 2)
    twice = scan("h1 = Add (h, x)", outputs="float[2] h1, float[2] h1")
    assert fate(twice, [own_outputs]) == ("rewritten", 1, 2)
    assert fate(scan("y = Exp (x) h1 = Sub (y, h)", outputs="float[2] h1, float[2] y"), DEFAULT) == ("reduced", 2, 1)


def test_a_loop_of_as_many_nodes_is_not_called_as_it_was_when_work_left_it() -> None:
    (entry,) = apply(scan("a = Exp (x) h1 = Mul (h, a) y = Tanh (h1)"), DEFAULT)[1].loops
    assert "loop-fission" in [fired.rule for fired in entry.fired]
    assert (entry.nodes_before, entry.nodes_after, entry.fate) == (3, 2, "reduced")
    (entry,) = apply(scan("h1 = Mul (h, x) y = Tanh (h1)"), DEFAULT)[1].loops
    assert [fired.rule for fired in entry.fired] == ["loop-fission"]
    assert (entry.nodes_before, entry.nodes_after, entry.fate) == (2, 2, "rewritten")


def test_inner_loops_come_first_and_have_entries_of_their_own() -> None:
    order: list[str] = []
    look = rule("look", lambda loop, ctx: order.append(loop.body.name or "") or NOTHING_HERE)
    _, report = apply(NESTED, [look])
    assert order == ["inner", "b"]
    assert [(one.where, one.nodes_before) for one in report.loops] == [
        ("main/Scan producing 'z'/Scan producing 'y'", 2),
        ("main/Scan producing 'z'", 5),
    ]


INNER_LEFT = """g (float[3,4] x, float[T,4] ys) => (float[3,4] z) <bool ct = {1}, int64 m = {3}> {
    z = Loop <body = outer (int64 i, bool c) => (bool c1, float[4] o) { c1 = Identity (c) r = Gather (x, i)
        o = Scan <num_scan_inputs = 1, body = inner (float[4] s, float[4] y) => (float[4] s1) { a = Add (s, y) s1 = Sin (a) }> (r, ys)
    }> (m, ct) }"""


def test_an_inner_loop_that_outlives_the_outer_one_is_still_its_own_entry() -> None:
    after, report = apply(INNER_LEFT, DEFAULT)
    assert [node.op_type for node in after.graph.node] == ["Scan"]
    assert [(one.where.count("/"), one.fate) for one in report.loops] == [(2, "kept"), (1, "removed")]
    assert [reason.code for reason in report.loops[0].reasons] == ["RECURRENCE"]


def test_a_loop_that_no_entry_stands_for_gets_one() -> None:
    left = [1]

    def edit() -> list[ir.Node]:
        forgotten.meta.clear()
        return []

    def check(one: Loop, _: Context) -> Patch | NotApplicable:
        nonlocal forgotten
        forgotten = one.node
        return Patch("forgot it", edit) if left and left.pop() else NOTHING_HERE

    forgotten: ir.Node
    _, report = apply(PLAIN, [rule("once", check)])
    assert [one.fate for one in report.loops] == ["removed", "kept"]


def test_a_loop_in_a_branch_is_found() -> None:
    inner = "v = Scan <num_scan_inputs = 1, body = d (float[2] e) => (float[2] e1) { e1 = Neg (e) }> (xs)"
    text = f"""g (bool t, float[3,2] xs) => (float[3,2] ys) {{
        ["my if"] ys = If (t) <then_branch = p () => (float[3,2] v) {{ {inner} }},
                      else_branch = q () => (float[3,2] u) {{ u = Abs (xs) }}> }}"""
    _, report = apply(text, RULES, feeds={"t": np.array(True), "xs": np.ones((3, 2), np.float32)})
    assert [(one.where, one.fate) for one in report.loops] == [("main/If 'my if'/Scan producing 'v'", "removed")]


def test_what_takes_a_loops_place_is_rewritten_too_under_its_name() -> None:
    _, report = apply(loop("x = Gather (xs, i) a = Exp (x) h1 = Add (h, a) y = Tanh (h1)"), RULES)
    (entry,) = report.loops
    assert {"loop-to-scan", "loop-fission"} <= {fired.rule for fired in entry.fired}
    assert (entry.kind, entry.steps) == ("Loop", 3)


@pytest.mark.parametrize(("shape", "steps"), [("3,2", 3), ("T,2", "T"), ("N,2", "N")])
def test_the_trip_count_is_reported_as_far_as_it_is_known(shape: str, steps: int | str) -> None:
    text = scan("h1 = Add (h, x) y = Tanh (h)", given=f"float[2] s, float[{shape}] xs", results=f"float[2] z, float[{shape}] ys")
    assert apply(text, [])[1].loops[0].steps == steps


def test_notes_of_patches_are_kept() -> None:
    fired: list[bool] = []

    def once(loop: Loop, ctx: Context) -> Patch | NotApplicable:
        return NOTHING_HERE if fired else Patch("did it", lambda: fired.append(True) or [loop.node], ("assumed 64",))

    assert apply(PLAIN, [rule("once", once)])[1].loops[0].notes == ["assumed 64"]


def test_progress_is_told_of_each_loop_once() -> None:
    told: list[tuple[int, int]] = []
    rewrite(prepared(NESTED), [dead_code.RULE], progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 2), (2, 2)]


def test_without_rules_nothing_happens() -> None:
    after, report = apply(NESTED, [])
    assert not report.changed
    assert [one.fate for one in report.loops] == ["kept", "kept"]
    assert report.operators_before == report.operators_after
    assert ort_run(after, data(after))


def test_what_computes_garbage_is_mended_before_any_rule_looks() -> None:
    seen: list[bool] = []

    def look(loop: Loop, ctx: Context) -> NotApplicable:
        seen.append(loop.body.outputs[0] is loop.body.outputs[1])
        return NOTHING_HERE

    apply(scan("h1 = Add (h, x)", outputs="float[2] h1, float[2] h1"), [rule("look", look), own_outputs])
    assert seen
    assert not any(seen)


def test_operators_are_counted_in_bodies_too() -> None:
    model = prepared(NESTED).model
    assert count_operators(model.graph) == {"Scan": 2, "Add": 2, "Exp": 2}
    graph = ir.Graph([], [], nodes=[ir.Node("my.domain", "Op", []), ir.Node("", "Op", [])])
    assert count_operators(graph) == {"my.domain.Op": 1, "Op": 1}
