"""A defect of a rule never reaches the caller: its patch is identified and reverted, with a reason and a warning."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.errors import InvariantBroken, OptionError, OrtscanWarning, VerificationFailed
from ortscan.modelio import load
from ortscan.pipeline.bisection import MOST_PLACES, rewrite_soundly
from ortscan.pipeline.rewriting import Rewritten
from ortscan.report.codes import lookup
from rewrites.base.report import RewriteReport
from rewrites.base.vetoes import Vetoes
from rewrites.cleanup import common_subexpressions, fold_constants, hoist_invariants
from rewrites.fission import loop_fission
from rewrites.rule import Patch
from tests.support.spoilt_rules import failing
from tests.support.text import model_from_text, normalised, ort_run, parsed

TWO = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x, float[4] w) => (float[T, 4] y, float[T, 4] z) {
  y = Scan <num_scan_inputs = 1, body = b (float[4] xi) => (float[4] yi) { v = Tanh (w) yi = Mul (xi, v) }> (x)
  z = Scan <num_scan_inputs = 1, body = c (float[4] xj) => (float[4] zi) { u = Exp (w) zi = Mul (xj, u) }> (x)
}
"""
FEEDS = {"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), "w": np.arange(4, dtype=np.float32)}


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a rule's patches also make a defect, in loops whose name or outputs contain a word."""

    def spoiled(rule: Any, after: Callable[[ir.Model], object], word: str = "") -> None:
        real = rule.check

        def check(loop: Any, ctx: Any) -> Any:
            outcome = real(loop, ctx)
            here = any(word in (value.name or "") for value in loop.node.outputs)
            if not isinstance(outcome, Patch) or not here:
                return outcome

            def edit() -> Any:
                made = outcome.edit()
                after(ctx.model)
                return made

            return Patch(outcome.what, edit, outcome.notes)

        monkeypatch.setattr(rule.RULE, "check", check)

    return spoiled


def output(model: ir.Model, name: str) -> ir.Value:
    return next(value for value in model.graph.outputs if value.name == name)


def negated(name: str) -> Callable[[ir.Model], None]:
    """Change the sign of an output."""

    def edit(model: ir.Model) -> None:
        old = output(model, name)
        node = ir.node("Neg", [old])
        model.graph.append(node)
        new = node.outputs[0]
        new.type, new.shape = old.type, old.shape
        old.name, new.name = f"{name}_before", name
        model.graph.outputs[list(model.graph.outputs).index(old)] = new

    return edit


def cut(name: str) -> Callable[[ir.Model], None]:
    """Remove one axis of size 1 too many from an output."""

    def edit(model: ir.Model) -> None:
        old = output(model, name)
        node = ir.node("ReduceSum", [old], attributes={"keepdims": 0})
        model.graph.append(node)
        new = node.outputs[0]
        old.name, new.name = f"{name}_before", name
        model.graph.outputs[list(model.graph.outputs).index(old)] = new

    return edit


def loops(model: onnx.ModelProto) -> list[str]:
    return [node.output[0] for node in model.graph.node if node.op_type == "Scan"]


def test_a_patch_that_makes_an_unsound_model_is_taken_back_and_the_other_loop_still_goes(spoil: Any) -> None:
    spoil(loop_fission, cut("z"), "z")
    with pytest.warns(
        OrtscanWarning, match=r"^the self-check took back loop-fission on main/Scan producing 'z': .*please report it"
    ) as told:
        result = ortscan.optimize(parsed(TWO), verify=False)
    assert told[0].filename == __file__
    assert loops(result) == ["z"]
    for mine, theirs in zip(ort_run(result, FEEDS), ort_run(parsed(TWO), FEEDS), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_the_loop_has_the_reason_and_explain_knows_it(spoil: Any) -> None:
    spoil(loop_fission, cut("z"), "z")
    with pytest.warns(OrtscanWarning):
        report = ortscan.explain(parsed(TWO))
    (left,) = report.loops_left
    assert ("loop-fission", "SELF-CHECK") in [(reason.rule, reason.code) for reason in left.reasons]
    assert lookup("SELF-CHECK") is not None


@pytest.mark.parametrize("where", ["check", "edit"])
def test_a_rule_that_raises_is_kept_from_the_loop_and_the_rest_is_done(
    spoil: Any, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    if where == "edit":
        spoil(hoist_invariants, failing(IndexError("list index out of range")), "z")
    else:
        monkeypatch.setattr(hoist_invariants.RULE, "check", failing(KeyError("k")))
    with pytest.warns(OrtscanWarning, match=r"hoist-invariants( on main/Scan producing '[yz]')?: (IndexError|KeyError)"):
        result = ortscan.optimize(parsed(TWO), verify=False)
    assert not loops(result)


def test_what_comes_from_elsewhere_is_no_defect_of_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    class Alarm(Exception):
        pass

    def check(*_: Any) -> Any:
        raise Alarm

    monkeypatch.setattr(fold_constants.RULE, "check", check)
    with pytest.raises(Alarm):
        ortscan.optimize(parsed(TWO))


def test_a_rule_that_fails_everywhere_is_left_out_after_a_few_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    many = "".join(
        f"y{i} = Scan <num_scan_inputs = 1, body = b{i} (float[4] x{i}) => (float[4] z{i}) {{ z{i} = Exp (x{i}) }}> (x)"
        for i in range(9)
    )
    results = ", ".join(f"float[T, 4] y{i}" for i in range(9))
    model = parsed(f'<ir_version: 8, opset_import: ["": 18]> g (float[T, 4] x) => ({results}) {{ {many} }}')
    monkeypatch.setattr(common_subexpressions.RULE, "check", failing(KeyError("k")))
    with pytest.warns(OrtscanWarning) as told:
        result = ortscan.optimize(model, verify=False)
    assert not loops(result)
    assert len(told) == MOST_PLACES


def test_a_change_beside_the_rules_that_is_unsound_leaves_the_model_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    from ortscan.pipeline import stages

    real = stages.tidy

    def spoiled(ctx: Any) -> None:
        cut("z")(ctx.model)
        real(ctx)

    monkeypatch.setattr(stages, "tidy", spoiled)
    with pytest.warns(OrtscanWarning, match=r"^the model is unchanged, because the self-check found it unsound: .*rank"):
        result = ortscan.optimize(parsed(TWO), verify=False)
    assert normalised(result) == normalised(parsed(TWO))
    own = parsed(TWO).opset_import[0].version
    with pytest.warns(OrtscanWarning, match=r"^the model is unchanged"):
        assert normalised(ortscan.optimize(parsed(TWO), opset=own, verify=False)) == normalised(parsed(TWO))
    with pytest.raises(InvariantBroken, match=f"^The model cannot be rewritten in opset {own + 1}: "):
        ortscan.optimize(parsed(TWO), opset=own + 1, verify=False)
    with pytest.raises(OptionError, match=r"^fix_shapes: the model cannot have these sizes"):
        ortscan.optimize(parsed(TWO), fix_shapes={"x": [3, 4]}, verify=False)
    branches = """<ir_version: 8, opset_import: ["": 18]> g (float[N] x, bool c) => (float[N] z) {
        z = If (c) <then_branch = t () => (float[N] a) { a = Neg (x) }, else_branch = e () => (float[N] b) { b = Abs (x) }> }"""
    with pytest.raises(OptionError, match=r"also fix the input that chooses it \(fix_inputs\)\.$"):
        ortscan.optimize(parsed(branches), fix_shapes={"x": [3]}, verify=False)


def test_debug_raises_instead(spoil: Any) -> None:
    spoil(loop_fission, cut("z"), "z")
    with pytest.raises(InvariantBroken, match="the result is not sound"):
        ortscan.api.rewritten(parsed(TWO), debug=True)


def test_a_difference_is_raised_and_the_patch_is_named(spoil: Any) -> None:
    spoil(loop_fission, negated("z"), "z")
    said = r"change \d+, loop-fission on main/Scan producing 'z', is the first that differs \(.*skip=\['loop-fission'\]"
    with pytest.raises(VerificationFailed, match=rf"differ.*; {said}"):
        ortscan.optimize(parsed(TWO))


def test_all_patches_but_the_one_that_makes_the_difference_can_be_kept(spoil: Any) -> None:
    spoil(loop_fission, negated("z"), "z")
    with pytest.warns(OrtscanWarning, match=r"^verification took back loop-fission on main/Scan producing 'z'"):
        result = ortscan.optimize(parsed(TWO), on_difference="keep")
    assert loops(result) == ["z"]


def test_where_nothing_can_be_compared_the_result_comes_with_a_warning() -> None:
    text = TWO.replace("v = Tanh (w)", "n = Neg (w) v = my.Thing (n)")
    with pytest.warns(OrtscanWarning, match=r"^The result was not verified: nothing was compared: the original does not load"):
        result = ortscan.optimize(parsed(text.replace('["": 18]', '["": 18, "my": 1]')))
    assert loops(result) == ["y"] or not loops(result)


@pytest.mark.parametrize("option", [{"verify": "half"}, {"verify": 1}, {"on_difference": "drop"}, {"on_difference": True}])
def test_what_is_no_way_to_verify_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(option))):
        ortscan.optimize(parsed(TWO), **option)


@pytest.mark.parametrize("name", ["reshape_1", "concat"])
def test_names_that_went_with_the_older_opset_are_not_given_again(name: str) -> None:
    text = f"""g (float[1] s, float[258,1] xs) => (float[M,1] ys) {{ {name} = Shape (xs)  first = Constant <value = int64 {{0}}> ()
        steps = Gather ({name}, first)  go = Constant <value = bool {{1}}> ()
        end, ys = Loop <body = b (int64 i, bool c, float[1] h) => (bool c1, float[1] h1, float[1] y) {{
            x = Gather <axis = 0> (xs, i) h1 = Max (h, x) y = Identity (h1) c1 = Identity (c) }}> (steps, go, s) }}"""
    with warnings.catch_warnings():
        warnings.simplefilter("error", OrtscanWarning)
        after = ortscan.optimize(model_from_text(text, 12, ir_version=7), verify=False)
    assert not any(node.op_type in ("Loop", "Scan") for node in after.graph.node)


def test_a_fault_after_the_last_patch_is_not_blamed_on_a_patch() -> None:
    def rewrite(stop_after: int | None, vetoes: Vetoes) -> Rewritten:
        for rule in ("first", "second", "third")[:stop_after]:
            vetoes.patches += [(rule, "main")] if vetoes.on(rule, "main") is None else []
        return Rewritten(load(parsed(TWO)), RewriteReport(), is_touched=stop_after is None)

    sound = rewrite_soundly(rewrite, lambda outcome: "the last stage fails" if outcome.is_touched else None)
    assert sound.result is not None
    assert sound.fault == "the last stage fails"
