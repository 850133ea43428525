"""One loop written by its parts; what a rule makes of it, as text and in numbers, or that it leaves it alone."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import onnx

from rewrites.base.report import RewriteReport
from rewrites.graph.context import Options
from rewrites.registry import LAST
from tests.rewrites.apply import apply, patches, read, reasons, rules_of
from tests.rewrites.fission.harness import data
from tests.support.loop_oracle import run_model
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.text import assert_text_equal, normalised

__all__ = ["becomes", "loop", "scan", "stays"]

Rules = ModuleType | Sequence[ModuleType]


def scan(
    inside: str,
    *,
    inputs: str = "float[2] h, float[2] x",
    outputs: str = "float[2] h1, float[2] y",
    attributes: str = "num_scan_inputs = 1",
    given: str = "float[2] s, float[3,2] xs",
    operands: str = "s, xs",
    results: str = "float[2] z, float[3,2] ys",
    before: str = "",
    after: str = "",
    outer: str = "z, ys",
    weights: str = "",
    own: str = "",
) -> str:
    """A graph around one Scan; `before` and `after` are nodes around it, `weights` initializers, `own` those of the body."""
    of_body = f"<{own}>" if own else ""
    node = f"{outer} = Scan <{attributes}, body = b ({inputs}) => ({outputs}) {of_body} {{ {inside} }}> ({operands})"
    return f"g ({given}) => ({results}) {f'<{weights}>' if weights else ''} {{ {before} {node} {after} }}"


def loop(
    inside: str,
    *,
    steps: int | None = 3,
    inputs: str = "float[2] h",
    outputs: str = "float[2] h1, float[2] y",
    given: str = "float[2] s, float[3,2] xs",
    operands: str = "s",
    condition: str = "",
    results: str = "float[2] z, float[N,2] ys",
    before: str = "",
    after: str = "",
    outer: str = "z, ys",
    weights: str = "",
    go_on: str = "c1 = Identity (c)",
) -> str:
    """The same around a Loop of `steps` steps, or as many as the input `m` says; its body goes on as `go_on` says."""
    body = f"b (int64 i, bool c, {inputs}) => (bool c1, {outputs}) {{ {go_on} {inside} }}"
    listed = ", ".join(part for part in (f"int64 m = {{{steps}}}" if steps is not None else "", weights) if part)
    inner = f"{before} {outer} = Loop <body = {body}> (m, {condition}, {operands}) {after}"
    public = f"{given}, int64 m" if steps is None else given
    return f"g ({public}) => ({results}) {f'<{listed}>' if listed else ''} {{ {inner} }}"


def becomes(
    rules: Rules,
    text: str,
    expected: str | None = None,
    *,
    opset: int = 18,
    feeds: Mapping[str, Any] | None = None,
    check: bool = True,
    on_ort: bool = True,
    options: Options | None = None,
    **sizes: int,
) -> tuple[onnx.ModelProto, RewriteReport]:
    """`rules` make `expected` of `text`, with the same numbers on onnxruntime (unless it cannot be trusted) and by the oracle."""
    model = read(text, opset, check=check)
    given = dict(feeds or {})
    if not {info.name for info in model.graph.input} <= given.keys():
        given = data(model, **sizes) | given
    chosen = rules_of([rules] if isinstance(rules, ModuleType) else rules)
    after, report = apply(model, chosen, feeds=given if on_ort else None, check=check, options=options)
    fired = set(patches(report))
    assert {rule.name for rule in chosen} <= fired <= {rule.name for rule in (*chosen, *LAST)}
    if expected is not None:
        assert_text_equal(after, expected)
    wanted = run_model(model, given)
    assert_same_numbers(ort_run(after, given), wanted)
    assert_same_numbers(ort_run(after, given, optimised=False), wanted)
    return after, report


def stays(rule: ModuleType, text: str, *codes: str, opset: int = 18, check: bool = True, detail: str = "") -> None:
    """`rule` leaves the loop of `text` as it is, and gives `codes` as the reasons."""
    after, report = apply(text, [rule], opset=opset, check=check)
    assert patches(report) == []
    assert reasons(report) == list(codes)
    assert detail in "".join(reason.detail for one in report.loops for reason in one.reasons)
    untouched, _ = apply(text, [], opset=opset, check=check)
    assert normalised(after) == normalised(untouched)
