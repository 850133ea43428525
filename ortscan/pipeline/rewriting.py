"""One model on its way through all rewrites, under the options it was given; the way can be gone again, as far as any patch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import onnx_ir as ir

from ortscan.modelio import (
    Inlining,
    LoadedModel,
    ModelLike,
    inline_functions,
    inline_functions_with_loops,
    restore_interface,
    retake_interface,
)
from ortscan.modelio.reading import read_from_pipe
from ortscan.options import (
    DEFAULT,
    DEFAULT_MEMORY_BUDGET,
    check_flags,
    left_out,
    memory_bytes,
    most_steps,
    names_of,
    on_request_names,
    rules_for,
    size_hints,
)
from ortscan.ort.evaluate import evaluate
from ortscan.ort.kernels import has_kernel
from ortscan.pipeline.fixed_shapes import FixedShapes, fixed_sizes, merged_shapes
from ortscan.pipeline.lifting import Lifted, load_in_opset
from ortscan.pipeline.needs import note_python_ops
from ortscan.pipeline.placement import place, target_line
from ortscan.targets import target_named, unroll_limits
from ortscan.verification.arguments import given_shapes
from rewrites.base.abilities import Abilities
from rewrites.base.report import Report
from rewrites.base.vetoes import Veto, Vetoes
from rewrites.driver.engine import count_operators, rewrite
from rewrites.driver.lower import may_be_refused
from rewrites.driver.model_changes import flatten_ifs
from rewrites.driver.prepare import has_absent_nodes, has_loops, learn_again, name_free_dims, prepare, tidy
from rewrites.driver.unshielded import holds_recurrent_nodes
from rewrites.edits.cleanup.cleanup import clean_up
from rewrites.edits.direction.pairs import may_have_pairs
from rewrites.edits.direction.reversing import may_be_reversed
from rewrites.edits.rule import Rule
from rewrites.graph.context import Context, Options
from rewrites.graph.walk import all_nodes
from rewrites.ops.rnn.recurrent_node import is_recurrent
from rewrites.python_ops.place import place_python_ops
from rewrites.rules.registry import NODE_RULES

__all__ = ["Outcome", "Rewriting", "Shapes"]

Shapes = Mapping[str, Sequence[int | None]]


class Outcome(NamedTuple):
    """A rewritten model as it is held inside, and the report. ``is_touched``: whether anything at all was done to it.

    ``vetoes``: the patches that were taken back.
    """

    loaded: LoadedModel
    report: Report
    is_touched: bool
    vetoes: Sequence[Veto] = ()


class Rewriting:
    """A model and the options of ``optimize``, read. Raises OptionError for an option that is not of its kind.

    ``fixed``: the shapes to build in; ``sizes``: the typical ones too, to compare models at.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        target: str = "cpu",
        opset: int | str = "auto",
        shapes: Shapes | None = None,
        fix_shapes: Shapes | None = None,
        max_unroll: int | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        fast_math: bool = False,
        custom_ops: bool = False,
        passes: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        debug: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.model: ModelLike = read_from_pipe(model)
        self.opset, self.debug = opset, debug
        self._target = target_named(target)
        check_flags(fast_math=fast_math, custom_ops=custom_ops, debug=debug)
        unwanted = names_of("skip", skip)
        self._rules = rules_for([DEFAULT, *on_request_names()] if custom_ops and passes is None else passes, unwanted)
        self._left_out = left_out(unwanted)
        self._node_rules = [rule for rule in NODE_RULES if rule in self._rules or rule.use != "asked"]
        self._budget, self._typical, self.fixed = memory_bytes(memory_budget), given_shapes(shapes), fixed_sizes(fix_shapes)
        self.sizes = merged_shapes(shapes, fix_shapes)
        self._unrolling = unroll_limits(self._target, most_steps(max_unroll))
        self._fast_math, self._custom_ops, self._progress = fast_math, custom_ops, progress

    def once(self, stop_after: int | None = None, vetoes: Vetoes | None = None, opset: int | str | None = None) -> Outcome:
        """Rewrite the model, with so many patches only, and without what is vetoed; in ``opset`` where another is given."""
        wanted = self.opset if opset is None else opset
        lifted = load_in_opset(self.model, wanted, self._target.abilities, self._node_rules)
        report, touched = self._rewrite(lifted, stop_after, vetoes or Vetoes())
        if lifted.migration is not None and not lifted.needed and not report.changed and stop_after is None:
            lifted = load_in_opset(self.model, "keep", self._target.abilities)
            report, touched = self._rewrite(lifted, stop_after, vetoes or Vetoes())
        elif not report.changed and not lifted.needed and not report.loops:
            if touched is not None or lifted.migration is not None:
                lifted = load_in_opset(self.model, "keep", self._target.abilities)
            touched = False
        report.migrated = lifted.migration is not None and lifted.migration.source != lifted.migration.target
        return Outcome(lifted.loaded, report, bool(touched) or report.migrated)

    def _rewrite(self, lifted: Lifted, stop_after: int | None, vetoes: Vetoes) -> tuple[Report, bool | None]:
        """Rewrite in place, and report; and say whether anything was done, None where the model is as it was loaded."""
        chosen, model, tied = self._target, lifted.loaded.model, bool(lifted.loaded.tied)
        said = [target_line(chosen)] if chosen.name != "cpu" else []
        inlined = _inline(model, chosen.abilities, self._node_rules)
        messages = lifted.loaded.tied + lifted.messages + inlined + said
        fixed = FixedShapes(model, self.fixed) if self.fixed else None
        messages += fixed.messages if fixed is not None else []
        idle = fixed is None and not self._custom_ops and not has_loops(model) and not has_absent_nodes(model, chosen.abilities)
        if idle and not _nodes_to_look_at(model, self._rules):
            counted = count_operators(model.graph)
            report = Report(operators_before=counted, operators_after=counted, target=chosen.name, messages=messages, tied=tied)
            return report, tied if tied or inlined else None
        name_free_dims(model)
        ctx = Context.of(model, self._options(model), evaluate, has_kernel if self._custom_ops else None)
        ctx.vetoes, ctx.left_out = vetoes, self._left_out
        prepare(ctx)
        learn = learn_again if fixed is None else _clean_up_and_learn
        if fixed is not None:
            clean_up(model.graph, list(model.graph), ctx)
        report = rewrite(ctx, self._rules, stop_after=stop_after, debug=self.debug, progress=self._progress, learn=learn)
        report.flattened, said_of_branches = flatten_ifs(ctx)
        messages += said_of_branches
        if self._custom_ops and stop_after is None:
            report.kernel_gaps = place_python_ops(ctx)
            messages += note_python_ops(lifted.loaded, report)
        tidy(ctx)
        if fixed is not None:
            fixed.put_into_outputs(ctx)
            retake_interface(lifted.loaded)
        restore_interface(lifted.loaded)
        report.operators_after = count_operators(model.graph)
        report.changes = ctx.changes
        report.give_every_loop_a_reason()
        place(report, chosen)
        report.target, report.messages, report.fixed, report.tied = chosen.name, messages, fixed is not None, tied
        return report, True

    def _options(self, model: ir.Model) -> Options:
        return Options(
            self._budget,
            size_hints(model, self._typical),
            fast_math=self._fast_math,
            custom_ops=self._custom_ops,
            native_always=self._target.native,
            bidirectional=self._target.bidirectional,
            domains=self._target.domains,
            target=self._target.abilities,
            unroll=self._unrolling,
        )


def _clean_up_and_learn(ctx: Context) -> bool:
    clean_up(ctx.model.graph, list(ctx.model.graph), ctx)
    return learn_again(ctx)


def _nodes_to_look_at(model: ir.Model, rules: Sequence[Rule[Any]]) -> bool:
    """Whether some recurrent node may not run as it is, is to be guarded, or may be one with another."""
    recurrent = [node for node in all_nodes(model.graph) if is_recurrent(node)]
    if not recurrent:
        return False
    subjects = {rule.subject for rule in rules if rule.phase == "direction"}
    if any(rule.use == "asked" for rule in rules) or ("pair" in subjects and may_have_pairs(model.graph)):
        return True
    if "recurrent node" in subjects and any(map(may_be_reversed, recurrent)):
        return True
    return may_be_refused(Context.of(model, Options(), evaluate))


def _inline(model: ir.Model, target: Abilities, rules: Sequence[Rule[Any]]) -> list[str]:
    outcome = inline_functions_with_loops(model)
    if not any(map(holds_recurrent_nodes, model.functions.values())):
        return _said(outcome)
    # Only in a graph is a node put under an If where a loop that fails before it goes.
    if not has_loops(model) and not _must_be_changed_where_they_stand(model, target, rules):
        return _said(outcome)
    more = inline_functions(model, holds_recurrent_nodes)
    messages = [f"inlined the function {name}, which holds a recurrent node" for name in more.inlined]
    return _said(outcome) + messages + [f"left the function {name} as it is: {reason}" for name, reason in more.kept]


def _must_be_changed_where_they_stand(model: ir.Model, target: Abilities, rules: Sequence[Rule[Any]]) -> bool:
    trial = model.clone()
    inline_functions(trial, holds_recurrent_nodes)
    ctx = Context.of(trial, Options(), evaluate)
    prepare(ctx)
    return may_be_refused(ctx, rules) or has_absent_nodes(trial, target)


def _said(outcome: Inlining) -> list[str]:
    messages = [f"inlined the function {name}, which holds a loop" for name in outcome.inlined]
    return messages + [f"left the function {name} as it is: {reason}" for name, reason in outcome.kept]
