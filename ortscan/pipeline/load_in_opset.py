"""Takes a model to the opset in which it is to be optimised."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from ortscan.migration import migrated
from ortscan.modelio import AnyModel, LoadedModel, load
from ortscan.ort.installed import check_opset, check_opset_of, opset_number
from ortscan.ort.runtimes import Runtime
from ortscan.ort.sessions import evaluate
from rewrites.base import since
from rewrites.base.abilities import Abilities
from rewrites.base.errors import MigrationError, OptionError
from rewrites.base.plain_text import shown
from rewrites.driver.prepare import has_loops
from rewrites.driver.recurrent_nodes import may_be_refused
from rewrites.graph.context import Context, Options
from rewrites.graph.marks import WAS_REFUSED
from rewrites.graph.walk import all_nodes
from rewrites.migration import Migration
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.registry import DEFAULT_NODE_RULES
from rewrites.rule import Rule

__all__ = ["InOpset", "load_in_opset"]

_MOST_REWRITES_SINCE = 18
_RECURRENT_SINCE = 7


@dataclass
class InOpset:
    """A loaded model in the opset wanted. ``migration``: how it came there, None where it was there already.

    ``needed``: whether it has to be in this opset, even if nothing else is done to it.
    """

    loaded: LoadedModel
    migration: Migration | None = None
    needed: bool = False
    messages: list[str] = field(default_factory=list)


def load_in_opset(
    model: AnyModel,
    opset: int | str,
    target: Abilities,
    rules: Sequence[Rule[Any]] = DEFAULT_NODE_RULES,
    runtime: Runtime | None = None,
) -> InOpset:
    """Load ``model`` and take it to ``opset``: a number, ``keep``, or ``auto``.

    ``auto`` is 18 where it is older and holds a loop, or a recurrent node that onnxruntime runs in later ones only, or that one of
    ``rules`` changes there; and the newest whose recurrent operators the target runs, where it is newer and may come to have one.
    ``target``: what the place where it will run can do. ``runtime``: the release it is for, where that is not the installed one.

    Raises OptionError for another ``opset``, and MigrationError where a number is out of reach.
    """
    check_opset(opset)
    if opset == "keep":
        loaded = load(model)
        check_opset_of(runtime, loaded.model.opset_imports.get("", 1))
        return InOpset(loaded)
    if opset != "auto":
        if isinstance(opset, str) and not opset.isdecimal():
            raise OptionError(f"opset must be 'auto', 'keep' or a number, not {shown(opset)}.")
        check_opset_of(runtime, opset_number(opset))
        loaded, migration = migrated(model, opset_number(opset), target)
        if migration.source < _RECURRENT_SINCE:
            _mark_old_nodes(loaded.model)
        return InOpset(loaded, migration, True, _said(migration))
    loaded = load(model)
    source = loaded.model.opset_imports.get("", _MOST_REWRITES_SINCE)
    if runtime is not None and source > runtime.opset:
        loaded, migration = migrated(model, runtime.opset, target)
        return InOpset(loaded, migration, True, _said(migration))
    if target.recurrent_until is not None and source > target.recurrent_until and _recurs(loaded.model):
        return _lowered(model, loaded, target.recurrent_until, target)
    wanted = has_loops(loaded.model) or loaded.model.functions or _holds_nodes_to_change(loaded.model, source, rules)
    if source >= _MOST_REWRITES_SINCE or not wanted:
        return InOpset(loaded)
    try:
        taken, migration = migrated(model, _MOST_REWRITES_SINCE, target)
    except MigrationError as error:
        return InOpset(loaded, messages=[f"stays in opset {source}: {error}"])
    if source < _RECURRENT_SINCE:
        _mark_old_nodes(taken.model)
    return InOpset(taken, migration, bool(migration.scans) or _too_old(loaded.model, source), _said(migration))


def _recurs(model: ir.Model) -> bool:
    """Whether there is a recurrent node, or a loop that may become one."""
    return has_loops(model) or bool(model.functions) or any(is_recurrent(node) for node in all_nodes(model.graph))


def _lowered(model: AnyModel, loaded: LoadedModel, opset: int, target: Abilities) -> InOpset:
    """Take a model to the newest opset whose recurrent operators the target runs; where that cannot be, it stays."""
    try:
        taken, migration = migrated(model, opset, target)
    except MigrationError as error:
        return InOpset(loaded, messages=[f"{target.name} runs no recurrent node of an opset newer than {opset}: {error}"])
    return InOpset(taken, migration, True, _said(migration))


def _holds_nodes_to_change(model: ir.Model, source: int, rules: Sequence[Rule[Any]]) -> bool:
    """Whether recurrent nodes are older than what onnxruntime runs, or may need a rule, and what they become has no operators."""
    if _too_old(model, source):
        return True
    recurrent = source < since.SCAN and any(is_recurrent(node) for node in all_nodes(model.graph))
    return recurrent and may_be_refused(Context.of(model, Options(), evaluate), rules)


def _too_old(model: ir.Model, source: int) -> bool:
    return source < _RECURRENT_SINCE and any(is_recurrent(node) for node in all_nodes(model.graph))


def _mark_old_nodes(model: ir.Model) -> None:
    """Tell the rules that onnxruntime did not run the recurrent nodes of the original."""
    for node in all_nodes(model.graph):
        if is_recurrent(node):
            WAS_REFUSED.put(node, True)


def _said(migration: Migration) -> list[str]:
    if migration.source == migration.target:
        return []
    return [
        f"taken from opset {migration.source} to {migration.target}",
        *(f"Scan {scan.name} of opset 8 became a Scan of today, {scan.form}" for scan in migration.scans),
        *migration.messages,
    ]
