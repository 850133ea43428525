"""What a rule looks at stays byte for byte what it was until its patch is made, whether it makes one or refuses."""

import contextlib
from typing import Any

import onnx_ir as ir
import pytest

import ortscan
from rewrites.graph.context import Context
from rewrites.registry import ON_MODELS, RULES
from rewrites.rule import Rule
from tests.campaigns.fuzz.idioms import IDIOMS
from tests.campaigns.fuzz.model_builder import draw_case


def content(ctx: Context) -> bytes:
    return ir.to_proto(ctx.model).SerializeToString(deterministic=True)


@pytest.mark.parametrize("idiom", IDIOMS)
def test_rules_only_look(idiom: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, changed = [], []

    def watch(rule: Rule[Any]) -> None:
        real = rule.check

        def check(subject: Any, ctx: Context) -> Any:
            before = content(ctx)
            outcome = real(subject, ctx)
            asked.append(rule.name)
            if content(ctx) != before:
                changed.append(rule.name)
            return outcome

        monkeypatch.setattr(rule, "check", check)

    for rule in (*RULES, *ON_MODELS):
        watch(rule)
    for number in range(2):
        case = draw_case(3, number, idiom=idiom, targets=("cpu", "webgpu"))
        with contextlib.suppress(ortscan.OrtscanError):  # what is drawn may be no model
            ortscan.optimize(case.model, verify=False, **case.options)
    assert changed == []
    assert len(asked) > 30
