"""Rules on ONNX text: in, out, and the report; the result is always checked, and compared on onnxruntime where feeds are given."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import onnx
import onnx_ir as ir

from ortscan.ort.sessions import evaluate
from rewrites.base.report import RewriteReport
from rewrites.driver.engine import rewrite
from rewrites.driver.prepare import prepare
from rewrites.driver.tidying import tidy
from rewrites.graph.context import Context, Options
from rewrites.rule import Rule
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import model_from_text

__all__ = ["apply", "context_of", "one_loop", "patches", "prepared", "reasons", "rules_of", "same_on_ort"]


def context_of(model: onnx.ModelProto, options: Options | None = None) -> Context:
    """The context of a copy of `model`, with onnxruntime to run constants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return Context.of(ir.from_proto(copy), options or Options(), evaluate)


def prepared(text: str, *, opset: int = 18, options: Options | None = None, check: bool = True) -> Context:
    """The model written in `text` (a whole model, or its graph alone) as the first rule meets it."""
    ctx = context_of(read(text, opset, check=check), options)
    prepare(ctx)
    return ctx


def read(text: str, opset: int = 18, *, check: bool = True) -> onnx.ModelProto:
    return model_from_text(text, opset, check=check)


def apply(
    text: str | onnx.ModelProto,
    rules: Sequence[ModuleType | Rule[Any]],
    *,
    opset: int = 18,
    options: Options | None = None,
    feeds: Mapping[str, Any] | None = None,
    check: bool = True,
    stop_after: int | None = None,
) -> tuple[onnx.ModelProto, RewriteReport]:
    """What `rules` make of the model written in `text`, the invariants checked after each patch, and the report.

    The result passes the checker, with strict shape inference, where `check` holds. With `feeds` it also computes on onnxruntime
    what the original does.
    """
    before = read(text, opset, check=check) if isinstance(text, str) else text
    ctx = context_of(before, options)
    prepare(ctx)
    report = rewrite(ctx, rules_of(rules), debug=True, stop_after=stop_after)
    tidy(ctx)
    after = ir.to_proto(ctx.model)
    for mine, theirs in ((after.graph.input, before.graph.input), (after.graph.output, before.graph.output)):
        assert [info.name for info in mine] == [info.name for info in theirs]
    if check:
        onnx.checker.check_model(after, full_check=True)
        onnx.shape_inference.infer_shapes(after, check_type=True, strict_mode=True, data_prop=True)
    if feeds is not None:
        same_on_ort(before, after, feeds)
    return after, report


def rules_of(given: Sequence[ModuleType | Rule[Any]]) -> list[Rule[Any]]:
    """The rules, or those of modules."""
    return [one if isinstance(one, Rule) else one.RULE for one in given]


def same_on_ort(before: onnx.ModelProto, after: onnx.ModelProto, feeds: Mapping[str, Any]) -> None:
    """Both compute the same on onnxruntime, and `after` also without its optimiser."""
    expected = ort_run(before, feeds)
    assert_same_numbers(ort_run(after, feeds), expected)
    assert_same_numbers(ort_run(after, feeds, optimised=False), expected, why="without optimisation, ")


def patches(report: RewriteReport) -> list[str]:
    """The rules that fired, in order."""
    return [fired.rule for fired in report.patches]


def reasons(report: RewriteReport) -> list[str]:
    """The codes of all reasons given."""
    return [reason.code for loop in report.loops for reason in loop.reasons]


def one_loop(ctx: Context) -> ir.Node:
    """The only Scan or Loop of the model, wherever it is."""
    (node,) = [node for node in ctx.model.graph.all_nodes() if node.op_type in ("Scan", "Loop")]
    return node
