"""The tables in documents that are generated from code or from measurements. Some are whole files and some are parts.

`python -m tests.support.tables` writes them.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from ortscan.targets import TARGETS, Target
from ortscan.verb_options import OPTIMIZE_OPTIONS
from rewrites.base.abilities import Recurrent, UnrollLimits
from rewrites.ops.quirks import QUIRKS
from rewrites.registry import (
    AFTER,
    AXES_OF_SCALARS,
    BEFORE,
    FLATTEN_IFS,
    PRODUCTS_AFTER,
    RULES,
    STATELESS_LOOPS,
    WEIGHTS,
)
from rewrites.rule import Rule
from tests.campaigns.providers import record as providers
from tests.campaigns.published import record as published
from tests.support import command_line
from tests.support.exporter_tables import found, gains_in_short, gains_table, left_table, setting
from tests.support.low_precision_table import as_table as low_precision_table
from tests.support.quirks import workarounds

__all__ = ["FOLDER", "PARTS", "ROOT", "TABLES", "with_parts", "write_tables"]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "ortscan" / "docs"
_PART = re.compile(r"(<!-- (?P<name>[a-z ]+): made by [^>]*-->\n).*?(<!-- end -->)", re.DOTALL)
_MADE = "Made by `python -m tests.support.tables`.\n"
_USES = {"default": "by default", "always": "always", "asked": "only if named"}
_BOTH = {"always": "all", "equal": "equal ones", "narrow": "narrow ones", "never": "none"}
_RUN_BY_TESTS = {"onnx": ["run by the tests, on onnxruntime's CPU"], "cpu": ["run by the tests"]}
_LIMITS = {
    "activations": "its usual activations",
    "clip": "no clip",
    "peepholes": "no peepholes",
    "input_forget": "no coupled gates",
    "reset_before": "`linear_before_reset=1`",
    "lengths": "no lengths",
}


def rules() -> str:
    """Return the page of rules: the order, a table for each phase, and the rules on models."""
    subjects = dict.fromkeys(rule.subject for rule in RULES)
    named = {subject: dict.fromkeys(f"`{rule.name}`" for rule in RULES if rule.subject == subject) for subject in subjects}
    order = "".join(f"* {subject}: {', '.join(names)}\n" for subject, names in named.items())
    parts = [
        f"# All rules\n\n{_MADE}",
        "The column *used* says when a rule is used:\n\n"
        "* *By default*: unless the option `skip` names the rule.\n"
        "* *Always*: whatever the options say.\n"
        "* *Only if named*: only if the option `passes` names the rule.\n"
        "* *Also where needed*: also on loops of a changed model on which onnxruntime might crash, whatever the options say.\n",
        "## Order\n\nThe list at the end of this section shows what rules can rewrite (the *subject*), and in which order they are tried on each subject. The first rule\n"
        "that applies changes the subject. Then all rules are tried again, from the start. Some subjects have short names:\n\n"
        "* *absent node*: a recurrent node that the target lacks\n"
        "* *pair*: two recurrent nodes that read the same sequence in opposite directions\n"
        "* *guarded node*: a node that crashes onnxruntime on some empty inputs\n"
        "* *written-out steps*: nodes that repeat the same step, because the exporter unrolled a loop\n"
        "* *prefix tree*: nodes that compute all prefixes of an operator without a loop\n\n"
        f"The order is:\n\n{order}",
    ]
    for phase in dict.fromkeys(rule.phase for rule in RULES):
        chosen = [rule for rule in RULES if rule.phase == phase]
        purpose = _first_line(f"rewrites.{chosen[0].check.__module__.split('.')[1]}")
        parts.append(f"## {phase}\n\n{purpose}\n\n{_rules(chosen)}")
    parts.append(f"## Before all others, on the model as a whole\n\n{_rules(BEFORE)}")
    parts.append(
        f"## After all others, on the model as a whole\n\n{_rules((FLATTEN_IFS, *PRODUCTS_AFTER, *AFTER, AXES_OF_SCALARS, STATELESS_LOOPS, *WEIGHTS))}"
    )
    return "\n".join(parts)


def _rules(chosen: Sequence[Rule[Any]]) -> str:
    rows = [(f"`{rule.name}`", rule.subject, _used(rule), _home(rule), _first_line(rule.check.__module__)) for rule in chosen]
    return _table(["rule", "subject", "used", "file in rewrites", "what it does"], rows)


def _home(rule: Rule[Any]) -> str:
    return f"{'/'.join(rule.check.__module__.split('.')[1:])}.py"


def _used(rule: Rule[Any]) -> str:
    return _USES[rule.use] + (", also where needed" if rule.crash_prone is not None else "")


def _first_line(module: str) -> str:
    return (sys.modules[module].__doc__ or "").splitlines()[0]


def targets() -> str:
    """Return the page of targets."""
    head = [
        f"# What each target runs\n\n{_MADE}",
        "If a target does not run a node, onnxruntime's CPU runs it. The data of the node is then copied to the CPU and back.\n\n"
        "* *Takes cells*: when a recognised cell becomes a native RNN, GRU or LSTM node: *always*, or only *if faster*.\n"
        "* *Both directions*: which pairs of recurrent nodes (forward and reverse) become one bidirectional node. *Equal ones* have the same\n"
        "  activations. *Narrow ones* have few hidden features and a batch of 1.\n"
        "* *Unrolls*: the loops that are unrolled if the option `max_unroll` is not set.\n"
        "* *Known from*: how the row was checked. Either the target was run ([results](../maintainers/providers.md)), or the row comes from\n"
        "  its documentation.\n\n"
        "Every target runs the opsets and IR versions of the installed onnxruntime. If a target runs only older recurrent operators,\n"
        '`opset="auto"` converts the model to their opset.\n',
    ]
    titles = [
        "target",
        "control flow",
        "recurrent operators",
        "other operator domains",
        "takes cells",
        "both directions",
        "unrolls",
        "known from",
    ]
    return "\n".join([*head, _table(titles, map(_target, TARGETS.values()))])


def _target(target: Target) -> Sequence[object]:
    flow = [f"`{op}`" for op in ("Scan", "Loop", "If") if op in target.control_flow]
    domains = [f"`{domain}`" for domain in sorted(target.domains)]
    cells = "always" if target.native else "if faster"
    name, both = f"`{target.name}`", _BOTH[target.bidirectional]
    recurrent = _recurrent(target.recurrent) + (f"; up to opset {target.recurrent_until}" if target.recurrent_until else "")
    return name, _listed(flow), recurrent, _listed(domains), cells, both, _unrolls(target.unroll), _known_from(target.name)


def _known_from(name: str) -> str:
    runs = [f"run on {seen['versions']}" for seen in providers.kept() if seen["target"] == name]
    return "; ".join([*_RUN_BY_TESTS.get(name, []), *runs]) or "documentation"


def _recurrent(operators: dict[str, Recurrent]) -> str:
    limits = [_LIMITS[limit.name] for limit in fields(Recurrent) if not all(getattr(op, limit.name) for op in operators.values())]
    assert len(set(operators.values())) <= 1, "the operators of a target have one row of limits"
    names = [f"`{op}`" for op in operators]
    return _listed(names) + (f"; {_listed(limits)}" if operators and limits else "")


def _unrolls(limits: UnrollLimits) -> str:
    if limits.steps == 0:
        return "nothing"
    steps = "any number of steps" if limits.steps is None else f"up to {limits.steps} steps"
    return f"{steps}, up to {limits.nodes} nodes a loop" + (", if that is faster" if limits.where_it_pays else "")


def options() -> str:
    """Return the table of the options of ``optimize``."""
    rows = [
        (f"`{option.example or f'{name}={option.default!r}'}`".replace("'", '"'), option.meaning)
        for name, option in OPTIMIZE_OPTIONS.items()
    ]
    report = (
        "`report=False`",
        '`True`: return the model and a report: `model, report = ortscan.optimize("in.onnx", report=True)`',
    )
    return _table(["option of `optimize`", "meaning"], [*rows, report])


def quirks() -> str:
    """Return the page of defects."""
    rows = [
        (f"`{quirk.id}`", quirk.seen, quirk.symptom, ", ".join(f"`{module}`" for module in workarounds()[quirk.id]))
        for quirk in QUIRKS.values()
    ]
    head = (
        f"# What onnxruntime and onnx get wrong\n\n{_MADE}\nThe column *avoided in* names the modules that work around a defect. Most defects "
        "have a test that fails\nas soon as the defect is fixed. If no such test is possible, `rewrites/ops/quirks.py` gives the "
        "reason. The column *seen*\nlists the versions that have the defect. Older versions were not tried.\n"
    )
    return f"{head}\n{_table(['defect', 'seen', 'what happens', 'avoided in'], rows)}"


def _left(exporters: Sequence[str]) -> str:
    return left_table(found(), exporters)


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts) or "none"


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


TABLES: dict[str, Callable[[], str]] = {
    "reference/command-line.md": command_line.as_document,
    "reference/rules.md": rules,
    "reference/targets.md": targets,
    "maintainers/quirks.md": quirks,
    "maintainers/providers.md": providers.as_document,
    "maintainers/published.md": published.as_document,
}
PARTS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"gains": lambda: f"{setting(found())}\n{gains_in_short(found())}"},
    "ortscan/docs/reference/options.md": {"options": options},
    "ortscan/docs/how-to/low-precision.md": {"low precision": low_precision_table},
    "ortscan/docs/how-to/exporters/index.md": {"gains": lambda: f"{setting(found())}\n{gains_table(found())}"},
    **{
        f"ortscan/docs/how-to/exporters/{page}.md": {"left": partial(_left, exporters)}
        for page, exporters in {
            "torch": ["torch", "keras-torch"],
            "tensorflow-keras": ["tf2onnx", "keras-tensorflow", "keras-jax"],
            "jax": ["jax2onnx"],
            "scikit-learn": ["skl2onnx"],
            "paddle": ["paddle2onnx"],
            "onnxscript": ["onnxscript", "onnxfn"],
        }.items()
    },
}
"""Documents, and what stands in them between ``<!-- name: made by ... -->`` and ``<!-- end -->``."""


def with_parts(text: str, parts: dict[str, Callable[[], str]]) -> str:
    """Return a document with its generated parts. Raise KeyError if a part has no generator."""
    return _PART.sub(lambda part: f"{part[1]}{parts[part['name']]()}{part[3]}", text)


def write_tables() -> None:
    """Write all tables."""
    for name, made in TABLES.items():
        (FOLDER / name).write_text(made(), encoding="utf-8")
    for name, parts in PARTS.items():
        document = ROOT / name
        document.write_text(with_parts(document.read_text(encoding="utf-8"), parts), encoding="utf-8")


if __name__ == "__main__":
    write_tables()
