"""What a loop computes is said in the words of its users, and where it comes from as the exporter noted it."""

import onnx_ir as ir
import pytest

from rewrites.base.report import Fired, LoopReport, PatchOutcome, Reason
from rewrites.driver.loop_reports import describe_loop, scope_of


def loop(rule: str = "", code: str = "", fate: str = "kept", is_a: str = "") -> LoopReport:
    fired = [Fired(1, rule, "main/Scan", "", PatchOutcome(is_a=is_a))] if rule else []
    return LoopReport("main/Scan", "Scan", 4, 3, 3, fate, fired, [Reason("r", code, "")] if code else [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (loop("recurrent-cell", is_a="LSTM, forward, H=7"), "LSTM, forward, H=7"),
        (loop("cumulative"), "running sum, product or extreme"),
        (loop("cumulative", code="RECURRENCE"), "running sum, product or extreme, beside another recurrence"),
        (loop(code="COST-LINEAR"), "linear recurrence s' = a * s + b"),
        (loop(code="LOOP-CONDITION"), "steps until a condition says that it is done"),
        (loop("loop-fission", fate="removed"), "steps that do not need each other"),
        (loop("loop-fission", code="RECURRENCE", fate="reduced"), "recurrence"),
        (loop(), ""),
    ],
)
def test_a_loop_is_said_to_be_what_was_found(entry: LoopReport, said: str) -> None:
    assert describe_loop(entry) == said


@pytest.mark.parametrize(
    ("noted", "said"),
    [
        (
            {
                "pkg.torch.onnx.name_scopes": "['', 'encoder.rnn', 'scan']",
                "pkg.torch.onnx.class_hierarchy": "['M', 'a.GRU', 'scan']",
            },
            "encoder.rnn (GRU)",
        ),
        ({"pkg.torch.onnx.name_scopes": "['', 'scan']", "pkg.torch.onnx.class_hierarchy": "['__main__.Net', 'scan']"}, "Net"),
        ({"namespace": ": Net/encoder.rnn: my.GRUCell/scan: torch.ops"}, "encoder.rnn (GRUCell)"),
        ({"pkg.torch.onnx.name_scopes": "[" * 5000}, ""),
        ({"pkg.torch.onnx.name_scopes": "__import__('os')"}, ""),
        ({}, ""),
    ],
)
def test_a_scope_is_read_from_what_the_exporter_noted(noted: dict[str, str], said: str) -> None:
    assert scope_of(ir.Node("", "Scan", [], metadata_props=noted)) == said
