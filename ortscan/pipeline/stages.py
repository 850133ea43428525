"""The stages of the rewriting. ``STAGES`` lists them in the order in which they run.

Each stage changes the model in place, or the report. A stage can end the work if the following stages have nothing to do.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import onnx_ir as ir

from ortscan.modelio import declare_current_types, declare_negative_sizes_free, restore_interface
from ortscan.ort.sessions import evaluate, has_kernel
from ortscan.pipeline.fixed_shapes import FixedShapes, size_hints
from ortscan.pipeline.notes import note_python_ops, note_replaceable_defaults, note_where_loops_run, target_line
from ortscan.pipeline.preparation import InOpset, inline_what_rules_change
from ortscan.targets import Target, unroll_limits
from rewrites.base.report import RewriteReport
from rewrites.base.vetoes import Vetoes
from rewrites.cleanup.cleanup import clean_up
from rewrites.direction.pairs import may_be_reversed, may_have_pairs
from rewrites.driver.engine import count_operators, rewrite
from rewrites.driver.loop_reports import describe_loop
from rewrites.driver.model_changes import flatten_ifs
from rewrites.driver.prepare import has_absent_nodes, has_loops, infer_again, name_free_dims, prepare
from rewrites.driver.recurrent_nodes import model_may_need_rule
from rewrites.driver.rolling import may_roll_up
from rewrites.driver.tidying import tidy
from rewrites.graph.context import Context, Options
from rewrites.graph.values import static_dims
from rewrites.graph.walk import all_nodes
from rewrites.native.operator_names import DOMAIN
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.python_ops.put_calls import place_python_ops
from rewrites.registry import NODE_RULES
from rewrites.rule import Rule
from rewrites.tidy.declared_outputs import detach_unproven_outputs

__all__ = ["STAGES", "CheckedOptions", "Work"]


@dataclass(frozen=True)
class CheckedOptions:
    """The options of ``optimize``, checked and converted for the stages.

    ``left_out`` has the names of skipped rules that change a whole model. ``typical`` has the typical shapes of inputs. ``fixed``
    has the shapes of inputs to build into the model. ``values`` has all options by name.
    """

    target: Target
    rules: Sequence[Rule[Any]]
    left_out: frozenset[str]
    typical: Mapping[str, Sequence[int | None]]
    fixed: Mapping[str, Sequence[int | None]]
    values: Mapping[str, Any]
    debug: bool
    progress: Callable[[int, int], None] | None

    @property
    def node_rules(self) -> list[Rule[Any]]:
        """The rules for recurrent nodes. Rules with ``use="asked"`` are included only if chosen."""
        return [rule for rule in NODE_RULES if rule in self.rules or rule.use != "asked"]


@dataclass
class Work:
    """A model between two stages, and what is known so far.

    Args:
        chosen: the options.
        start: the model as it was loaded. The stages change it in place.
        vetoes: the patches to skip.
        stop_after: the maximum number of patches.
        written_out: the names of unrolled steps that must not be rolled up into a loop.
        messages: notes for the report.
        fixed: the built-in sizes, or None if no sizes are built in.
        is_touched: True if the model was changed, False if only functions were inlined, None if nothing was changed.
        is_static: True if enough sizes are known to fold constants outside loops too.
        is_over: True if the following stages have nothing to do.
        ctx: the context of the rules. It is set when the model is prepared.
    """

    chosen: CheckedOptions
    start: InOpset
    vetoes: Vetoes
    stop_after: int | None = None
    written_out: frozenset[str] = frozenset()
    report: RewriteReport = field(default_factory=RewriteReport)
    messages: list[str] = field(default_factory=list)
    fixed: FixedShapes | None = None
    is_touched: bool | None = True
    is_static: bool = False
    is_over: bool = False

    ctx: Context = field(init=False)

    @property
    def model(self) -> ir.Model:
        """The model that the stages change in place."""
        return self.start.loaded.model

    @property
    def is_fixed(self) -> bool:
        """True if sizes or values of inputs are built into the model. Many other values may then be constant."""
        return self.fixed is not None or bool(self.start.loaded.built_in)


def _inline_functions(work: Work) -> None:
    target = work.chosen.target
    inlined = inline_what_rules_change(work.model, target.abilities, work.chosen.node_rules, runs_plans=DOMAIN in target.domains)
    target_notes = [target_line(work.chosen.target)] if work.chosen.target.name != "cpu" else []
    work.messages += work.start.loaded.tied + work.start.loaded.built_in + work.start.messages + inlined + target_notes
    work.is_touched = bool(work.start.loaded.tied) if work.start.loaded.tied or inlined else None


def _build_in_shapes(work: Work) -> None:
    if work.chosen.fixed:
        work.fixed = FixedShapes(work.model, work.chosen.fixed)
        work.messages += work.fixed.messages


def _end_if_nothing_to_do(work: Work) -> None:
    chosen, model = work.chosen, work.model
    is_idle = not work.is_fixed and not chosen.values["custom_ops"] and not has_loops(model)
    if is_idle and not has_absent_nodes(model, chosen.target.abilities) and not _has_nodes_to_change(model, chosen.rules):
        counted = count_operators(model.graph)
        work.report = RewriteReport(operators_before=counted, operators_after=counted)
        work.is_over = True
    else:
        work.is_touched = True


def _prepare(work: Work) -> None:
    chosen = work.chosen
    name_free_dims(work.model)
    work.ctx = Context.of(work.model, _options(work), evaluate, has_kernel if chosen.values["custom_ops"] else None)
    work.ctx.names.reserve(work.start.loaded.names)
    work.ctx.vetoes, work.ctx.left_out, work.ctx.written_out = work.vetoes, chosen.left_out, work.written_out
    prepare(work.ctx)
    work.is_static = work.is_fixed or _has_known_sizes(work.model)


def _apply_rules(work: Work) -> None:
    chosen = work.chosen
    work.report = rewrite(
        work.ctx,
        chosen.rules,
        stop_after=work.stop_after,
        debug=chosen.debug,
        progress=chosen.progress,
        clean=_clean_up if work.is_static else None,
        learn=_clean_up_and_learn if work.is_static else infer_again,
    )


def _flatten_ifs(work: Work) -> None:
    work.report.flattened, messages = flatten_ifs(work.ctx)
    work.messages += messages


def _place_python_ops(work: Work) -> None:
    if work.chosen.values["custom_ops"] and work.stop_after is None:
        work.report.kernel_gaps = place_python_ops(work.ctx)
        work.messages += note_python_ops(work.start.loaded, work.report)


def _tidy(work: Work) -> None:
    tidy(work.ctx)
    if work.fixed is not None:
        work.fixed.put_into_outputs(work.ctx)
        declare_current_types(work.start.loaded)
    declare_negative_sizes_free(work.start.loaded)
    detach_unproven_outputs(work.ctx, work.start.loaded.interface.output_shapes)
    restore_interface(work.start.loaded)


def _conclude(work: Work) -> None:
    work.report.operators_after = count_operators(work.model.graph)
    work.report.changes = work.ctx.changes
    work.report.give_every_loop_a_reason()
    for loop in work.report.loops:
        loop.is_a = loop.is_a or describe_loop(loop)
    note_replaceable_defaults(work.model, work.report)
    note_where_loops_run(work.report, work.chosen.target)


STAGES: tuple[Callable[[Work], None], ...] = (
    _inline_functions,
    _build_in_shapes,
    _end_if_nothing_to_do,
    _prepare,
    _apply_rules,
    _flatten_ifs,
    _place_python_ops,
    _tidy,
    _conclude,
)
"""The stages in their order."""


def _options(work: Work) -> Options:
    """Return the options of the rules.

    Some of them are options of ``optimize`` with the same name. The others follow from the target and the typical sizes.
    """
    chosen, target = work.chosen, work.chosen.target
    same = {field.name: chosen.values[field.name] for field in fields(Options) if field.name in chosen.values}
    return Options(
        **same
        | {
            "sizes": size_hints(work.model, chosen.typical),
            "native_always": target.native,
            "bidirectional": target.bidirectional,
            "domains": target.domains,
            "target": target.abilities,
            "unroll": unroll_limits(target, chosen.values["max_unroll"]),
        }
    )


def _has_known_sizes(model: ir.Model) -> bool:
    """Return True if the model has inputs, and every dimension of every input is declared as a number."""
    return bool(model.graph.inputs) and all(static_dims(value) is not None for value in model.graph.inputs)


def _clean_up(ctx: Context) -> None:
    clean_up(ctx.model.graph, list(ctx.model.graph), ctx)


def _clean_up_and_learn(ctx: Context) -> bool:
    _clean_up(ctx)
    return infer_again(ctx)


def _has_nodes_to_change(model: ir.Model, rules: Sequence[Rule[Any]]) -> bool:
    """Return True if ``rules`` may change nodes of a model that has no loops.

    Rules may roll up steps or a prefix tree. They may also change, reverse or pair recurrent nodes, or guard them by an If.
    """
    if may_roll_up(model, rules):
        return True
    recurrent = [node for node in all_nodes(model.graph) if is_recurrent(node)]
    if not recurrent:
        return False
    subjects = {rule.subject for rule in rules if rule.phase == "direction"}
    if any(rule.use == "asked" for rule in rules) or ("pair" in subjects and may_have_pairs(model.graph)):
        return True
    if "recurrent node" in subjects and any(map(may_be_reversed, recurrent)):
        return True
    return model_may_need_rule(Context.of(model, Options(), evaluate))
