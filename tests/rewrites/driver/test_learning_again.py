"""Where no rule fires any more, the model is inferred again, and the rules go on with what that tells."""

import onnx_ir as ir

import ortscan
from rewrites.base.report import RewriteReport
from rewrites.cleanup import dead_code
from rewrites.driver.engine import rewrite
from rewrites.driver.prepare import infer_again
from rewrites.loop_form import one_trip
from tests.rewrites.apply import prepared, read, rules_of
from tests.rewrites.harness import scan

ONE = scan("h1 = Add (h, x) y = Neg (h1)", given="float[2] s, float[1,2] xs", results="float[2] z, float[1,2] ys")
MANY = scan("h1 = Add (h, x) d = Abs (x) y = Neg (h1)")


def rewritten(text: str, rules, answers: list[bool], **options) -> tuple[RewriteReport, int]:
    """The report, and how often the driver asked to learn; `answers` are what it was told."""
    asked = []

    def learn(_) -> bool:
        asked.append(len(asked))
        return answers[len(asked) - 1]

    return rewrite(prepared(text), rules_of(rules), learn=learn, **options), len(asked)


def test_a_model_of_which_nothing_changes_is_inferred_once() -> None:
    assert rewritten(MANY, [one_trip], [])[1] == 0


def test_after_patches_the_rules_go_on_until_nothing_more_is_known() -> None:
    report, asked = rewritten(MANY, [dead_code], [True, True, False])
    assert (len(report.patches), asked) == (1, 3)


def test_what_never_ends_to_be_better_known_ends() -> None:
    assert rewritten(MANY, [dead_code], [True] * 99)[1] == 3


def test_nothing_is_learned_after_the_last_patch_that_is_wanted() -> None:
    assert rewritten(MANY, [dead_code], [], stop_after=1)[1] == 0


def test_a_model_without_loops_and_branches_has_nothing_to_learn() -> None:
    ctx = prepared(ONE)
    rewrite(ctx, [one_trip.RULE])
    assert not any(node.op_type == "Scan" for node in ctx.model.graph.all_nodes())
    assert not infer_again(ctx)


def test_a_size_that_only_vectors_elsewhere_tell_is_learned() -> None:
    text = """g (float[3,2] xs, float[2] s, bool b) => (float[2] z) <int64[1] k = {0}> {
        n = Shape (xs)  v = Expand (s, n)
        z = If (b) <then_branch = t () => (float[2] p) { p = ReduceSum <keepdims = 0> (v, k) }, else_branch = e () => (float[2] q) { q = Neg (s) }> }"""
    ctx = prepared(text)
    (made,) = [value for node in ctx.model.graph for value in node.outputs if value.name == "v"]
    made.shape = ir.Shape([None, 2])
    assert infer_again(ctx)
    assert made.shape == ir.Shape([3, 2])
    assert not infer_again(ctx)


def test_a_branch_that_new_knowledge_decides_is_taken() -> None:
    text = """g (float[T,2] xs, float[2] s) => (float[2] z) <int64[1] k = {0}, int64 two = {2}> {
        n = Shape (xs)  v = Expand (s, n)  c = Shape (v)  c0 = ReduceMax <keepdims = 0> (c)  b = Greater (c0, two)
        z = If (b) <then_branch = t () => (float[2] p) { p = ReduceSum <keepdims = 0> (v, k) }, else_branch = e () => (float[2] q) { q = Neg (s) }> }"""
    ctx = prepared(text)
    assert "If" in [node.op_type for node in ctx.model.graph]
    ctx.model.graph.inputs[0].shape = ir.Shape([3, 2])
    (made,) = [value for node in ctx.model.graph for value in node.outputs if value.name == "v"]
    made.shape = ir.Shape([None, 2])
    assert infer_again(ctx)
    assert "If" not in [node.op_type for node in ctx.model.graph]


def test_what_is_not_read_any_more_is_dropped_before_anything_is_inferred() -> None:
    ctx = prepared(scan("h1 = Add (h, x) d = Abs (x) y = Neg (h1)", after="u = Neg (ys)"))
    assert infer_again(ctx)
    assert "Neg" not in [node.op_type for node in ctx.model.graph]
    assert not infer_again(ctx)


def test_with_fixed_shapes_too_a_second_call_changes_nothing() -> None:
    body = "n = Shape (h) f = Expand (k, n) g = Add (f, x) h1 = Mul (h, g) y = Neg (h1)"
    text = scan(
        body,
        given="float[N] s, float[T,N] xs",
        results="float[N] z, float[T,N] ys",
        inputs="float[N] h, float[N] x",
        outputs="float[N] h1, float[N] y",
        weights="float k = {2}",
    )
    shapes = {"xs": [3, 2]}
    once = ortscan.optimize(read(text), fix_shapes=shapes)
    assert ortscan.optimize(once, fix_shapes=shapes) == once
