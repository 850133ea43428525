"""Load a model in the opset that rules need, and inline the functions that contain nodes to change.

Works around ORT-CAST-AFTER-TRANSPOSE and ORT-HALVES-AFTER-TRANSPOSE.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from ortscan.migration import migrated
from ortscan.modelio import AnyModel, Inlining, LoadedModel, inline_functions, inline_functions_with_loops, load
from ortscan.ort.installed import check_opset, check_opset_of, opset_number
from ortscan.ort.runtimes import Runtime
from ortscan.ort.sessions import evaluate
from rewrites.base import since
from rewrites.base.abilities import Abilities
from rewrites.base.errors import MigrationError, OptionError
from rewrites.base.plain_text import shown
from rewrites.driver.prepare import has_absent_nodes, has_loops, prepare
from rewrites.driver.recurrent_nodes import model_may_need_rule
from rewrites.driver.unshielded import holds_recurrent_nodes
from rewrites.graph.context import Context, Options
from rewrites.graph.marks import WAS_REFUSED
from rewrites.graph.walk import all_nodes
from rewrites.migration import Migration
from rewrites.native.operator_names import DOMAIN
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.registry import DEFAULT_NODE_RULES
from rewrites.rule import Rule
from rewrites.tidy.moved_operands import FUSED_PART, functions_with_cast_transposes

__all__ = ["InOpset", "inline_what_rules_change", "load_in_opset"]

_MOST_REWRITES_SINCE = 18
_RECURRENT_SINCE = 7


@dataclass
class InOpset:
    """A loaded model in the requested opset.

    Args:
        loaded: the model.
        migration: the report of the migration, or None if the model was not migrated.
        needed: True if the result must be in this opset. If False, and no rule changes the model, the original opset is kept.
        messages: notes for the report.
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
    """Load ``model`` and migrate it to ``opset``.

    With ``auto``, the model keeps its opset except in these cases:

    * The opset is newer than ``runtime`` supports. Then the model is lowered to the newest opset of ``runtime``.
    * The target runs only recurrent nodes of older opsets, and the result may have a recurrent node. Then the model is lowered, if
      possible, to the newest opset whose recurrent nodes the target runs.
    * The opset is older than 18, and the model has one of these: a loop, a function, a recurrent node that is too old for
      onnxruntime, or a recurrent node that a rule may change. Then the model is migrated, if possible, to opset 18.

    Args:
        model: the model.
        opset: a number, ``keep`` or ``auto``.
        target: the abilities of the target.
        rules: the rules that may change recurrent nodes.
        runtime: the onnxruntime that will run the result, or None for the installed one.

    Raises:
        OptionError: ``opset`` is not an opset that onnxruntime runs.
        MigrationError: the model cannot be written in that opset.
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
        return InOpset(loaded, migration, True, _migration_notes(migration))
    loaded = load(model)
    source = loaded.model.opset_imports.get("", _MOST_REWRITES_SINCE)
    if runtime is not None and source > runtime.opset:
        loaded, migration = migrated(model, runtime.opset, target)
        return InOpset(loaded, migration, True, _migration_notes(migration))
    if target.recurrent_until is not None and source > target.recurrent_until and _may_have_recurrent_nodes(loaded.model):
        return _lowered(model, loaded, target.recurrent_until, target)
    wanted = has_loops(loaded.model) or loaded.model.functions or _holds_nodes_to_change(loaded.model, source, rules)
    if source >= _MOST_REWRITES_SINCE or not wanted:
        return InOpset(loaded)
    try:
        migrated_model, migration = migrated(model, _MOST_REWRITES_SINCE, target)
    except MigrationError as error:
        return InOpset(loaded, messages=[f"stays in opset {source}: {error}"])
    if source < _RECURRENT_SINCE:
        _mark_old_nodes(migrated_model.model)
    return InOpset(migrated_model, migration, bool(migration.scans) or _too_old(loaded.model, source), _migration_notes(migration))


def _may_have_recurrent_nodes(model: ir.Model) -> bool:
    """Return True if the rewritten model may contain a recurrent node.

    That is possible if ``model`` has a recurrent node, a loop (which a rule may replace by a recurrent node), or a function (which
    may contain either).
    """
    return has_loops(model) or bool(model.functions) or any(is_recurrent(node) for node in all_nodes(model.graph))


def _lowered(model: AnyModel, loaded: LoadedModel, opset: int, target: Abilities) -> InOpset:
    """Migrate ``model`` to ``opset``, the newest opset whose recurrent operators the target runs.

    If that is impossible, return ``loaded``, the model in its own opset, with a message.
    """
    try:
        migrated_model, migration = migrated(model, opset, target)
    except MigrationError as error:
        return InOpset(
            loaded,
            messages=[f"{target.name} runs recurrent nodes only up to opset {opset}, but the model cannot be lowered: {error}"],
        )
    return InOpset(migrated_model, migration, True, _migration_notes(migration))


def _holds_nodes_to_change(model: ir.Model, source: int, rules: Sequence[Rule[Any]]) -> bool:
    """Return True if the model should be migrated to a newer opset because of its recurrent nodes.

    Two kinds of recurrent nodes need a newer opset: nodes of an opset that onnxruntime does not run, and nodes that one of
    ``rules`` may change if newer operators are available. ``source`` is the opset of the model.
    """
    if _too_old(model, source):
        return True
    recurrent = source < since.SCAN and any(is_recurrent(node) for node in all_nodes(model.graph))
    return recurrent and model_may_need_rule(Context.of(model, Options(), evaluate), rules)


def _too_old(model: ir.Model, source: int) -> bool:
    return source < _RECURRENT_SINCE and any(is_recurrent(node) for node in all_nodes(model.graph))


def _mark_old_nodes(model: ir.Model) -> None:
    """Mark all recurrent nodes of a migrated model. Rules read the mark, ``WAS_REFUSED``.

    It means that onnxruntime rejects the node in the original model, because the opset of the original is too old.
    """
    for node in all_nodes(model.graph):
        if is_recurrent(node):
            WAS_REFUSED.put(node, True)


def _migration_notes(migration: Migration) -> list[str]:
    if migration.source == migration.target:
        return []
    return [
        f"migrated from opset {migration.source} to {migration.target}",
        *(f"the opset-8 Scan {scan.name} became a current Scan, {scan.form}" for scan in migration.scans),
        *migration.messages,
    ]


def inline_what_rules_change(model: ir.Model, target: Abilities, rules: Sequence[Rule[Any]], *, runs_plans: bool) -> list[str]:
    """Inline the functions that contain nodes that rules may change. Return notes for the report.

    The model is changed in place.

    Args:
        model: the model.
        target: the abilities of the target.
        rules: the rules that may change recurrent nodes.
        runs_plans: True if the target runs loop plans. Functions that contain a loop plan are then not inlined.
    """
    messages = _inlining_notes(inline_functions_with_loops(model, except_domain=DOMAIN if runs_plans else ""), "holds a loop")
    if has_loops(model):
        crossed = functions_with_cast_transposes(model)
        messages += _inlining_notes(inline_functions(model, lambda function: function in crossed), FUSED_PART)
    if not any(map(holds_recurrent_nodes, model.functions.values())):
        return messages
    # Without loops no guard is needed: a node gets an If around it only if a rule removes an earlier loop that may fail.
    if not has_loops(model) and not _has_nodes_that_must_change(model, target, rules):
        return messages
    return messages + _inlining_notes(inline_functions(model, holds_recurrent_nodes), "holds a recurrent node")


def _has_nodes_that_must_change(model: ir.Model, target: Abilities, rules: Sequence[Rule[Any]]) -> bool:
    trial = model.clone()
    inline_functions(trial, holds_recurrent_nodes)
    ctx = Context.of(trial, Options(), evaluate)
    prepare(ctx)
    return model_may_need_rule(ctx, rules) or has_absent_nodes(trial, target)


def _inlining_notes(outcome: Inlining, reason: str) -> list[str]:
    messages = [f"inlined the function {name}, which {reason}" for name in outcome.inlined]
    return messages + [f"did not inline the function {name}: {obstacle}" for name, obstacle in outcome.not_inlined]
