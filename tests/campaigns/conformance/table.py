"""Writes what became of the wrapped node tests as a table, one row for each operator."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ortscan.report.codes import meaning
from tests.campaigns.conformance.try_out import Outcome

__all__ = ["counts", "share_gone", "table"]

_HEAD = """# What leaves a loop, operator by operator

Made by `python -m tests.campaigns conformance`. It takes each node test of the ONNX project, and wraps the tested operator in a Scan of three
steps. It passes this model to `ortscan.optimize`, and compares both models on onnxruntime. Each test is wrapped in four ways, which differ in
three points:

* Either all float inputs of the operator differ between steps, or only the first one.
* Inputs that are the same in every step are either constants or inputs of the model.
* The operator is alone in the loop, next to an unrelated state, or between other nodes.

*Gone* counts the wrapped tests in which no loop remains. If a loop remains, the test is counted under the first reason code of this loop.
Wrapped tests that onnxruntime does not run are not counted.
"""


def counts(outcomes: Iterable[Outcome]) -> Counter[str]:
    """Count outcomes by their status."""
    return Counter(outcome.status for outcome in outcomes)


def share_gone(outcomes: Sequence[Outcome]) -> float:
    """Give the part of the tests onnxruntime runs of which nothing is left in a loop."""
    found = counts(outcomes)
    return found["gone"] / max(1, len(outcomes) - found["not run"])


def table(outcomes: Sequence[Outcome]) -> str:
    """Give the table as Markdown."""
    by_operator: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.status != "not run":
            by_operator[outcome.op].append(outcome)
    found = counts(outcomes)
    ran = len(outcomes) - found["not run"]
    lines = [
        _HEAD,
        f"{ran} wrapped tests run, of {len(by_operator)} operators: {found['gone']} gone ({share_gone(outcomes):.1%}), "
        f"{found['left']} left, {found['wrong']} wrong, {found['invalid']} invalid, {found['crash']} crashed.",
        "",
        "| operator | gone | left in the loop, by reason code |",
        "|---|---|---|",
    ]
    for op in sorted(by_operator, key=str.lower):
        group = by_operator[op]
        gone = sum(outcome.status == "gone" for outcome in group)
        reasons = Counter(f"`{outcome.code}`" if outcome.code else outcome.status for outcome in group if outcome.status != "gone")
        left = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
        lines.append(f"| {op} | {gone} of {len(group)} | {left} |")
    codes = sorted({outcome.code for outcome in outcomes if outcome.code})
    lines += ["", "| reason | meaning |", "|---|---|", *(f"| `{code}` | {meaning(code)} |" for code in codes), ""]
    return "\n".join(lines)
