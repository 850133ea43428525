"""One model on its way through all rewrites, under the options it was given; the way can be gone again, as far as any patch."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from ortscan.base.costs_file import read_costs
from ortscan.modelio import AnyModel, LoadedModel, ModelLike, with_inputs_built_in
from ortscan.modelio.reading import read_from_pipe
from ortscan.modelio.source import open_source
from ortscan.options import (
    DEFAULT_MEMORY_BUDGET,
    check_flags,
    check_native,
    left_out,
    memory_bytes,
    most_steps,
    names_of,
    rules_for,
    wanted,
)
from ortscan.ort.runtimes import runtime_named
from ortscan.pipeline.fixed_shapes import fixed_sizes, merged_shapes
from ortscan.pipeline.load_in_opset import InOpset, load_in_opset
from ortscan.pipeline.stages import STAGES, Chosen, Work
from ortscan.running.specs import input_specs
from ortscan.soundness.lacking import fit_versions
from ortscan.targets import target_named, unroll_limits
from ortscan.verification.inputs.shapes import given_dims, given_shapes, shapes_with_dims
from rewrites.base.report import Report
from rewrites.base.vetoes import Veto, Vetoes
from rewrites.driver.rolling import not_worth_rolling
from rewrites.registry import NODE_RULES

__all__ = ["Costs", "Dims", "Outcome", "Rewriting", "Shapes"]

Shapes = Mapping[str, Sequence[int | None]]
Dims = Mapping[str, int]
Costs = str | os.PathLike[str] | Mapping[str, float]


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
        dims: Dims | None = None,
        fix_shapes: Shapes | None = None,
        fix_dims: Dims | None = None,
        fix_inputs: Mapping[str, Any] | None = None,
        freeze: bool | Iterable[str] = False,
        max_unroll: int | None = None,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
        costs: Costs | None = None,
        fast_math: bool = False,
        custom_ops: bool = False,
        native: bool = False,
        runtime: str | None = None,
        passes: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        debug: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.model: AnyModel = read_from_pipe(model)
        self.opset, self.debug, chosen = opset, debug, target_named(target)
        check_flags(fast_math=fast_math, custom_ops=custom_ops, native=native, debug=debug)
        self.runtime = runtime_named(runtime)
        check_native(native, self.runtime)
        unwanted = names_of("skip", skip)
        typical, fixed = self._sizes(given_shapes(shapes), dims, "dims"), self._sizes(fixed_sizes(fix_shapes), fix_dims, "fix_dims")
        rules = rules_for(wanted(passes, chosen, custom_ops=custom_ops, native=native), unwanted)
        self._chosen = Chosen(
            chosen,
            rules,
            [rule for rule in NODE_RULES if rule in rules or rule.use != "asked"],
            left_out(unwanted),
            memory_bytes(memory_budget),
            typical,
            fixed,
            unroll_limits(chosen, most_steps(max_unroll)),
            read_costs(costs),
            fast_math,
            custom_ops,
            debug,
            progress,
        )
        self.model = with_inputs_built_in(self.model, fix_inputs, freeze)
        self._written_out = frozenset[str]()
        self.fixed, self.sizes = self._chosen.fixed, merged_shapes(typical, fixed)

    def _sizes(self, shapes: Shapes, dims: Any, option: str) -> dict[str, Sequence[int | None]]:
        """Return ``shapes`` with the sizes of named dimensions."""
        sizes = given_dims(dims, option)
        if not sizes:
            return dict(shapes)
        with ExitStack() as stack:
            return shapes_with_dims(input_specs(open_source(self.model, stack).proto.graph), shapes, sizes, option)

    def once(self, stop_after: int | None = None, vetoes: Vetoes | None = None, opset: int | str | None = None) -> Outcome:
        """Rewrite the model, with so many patches only, and without what is vetoed; in ``opset`` where another is given."""
        wanted, abilities = self.opset if opset is None else opset, self._chosen.target.abilities
        start = load_in_opset(self.model, wanted, abilities, self._chosen.node_rules, self.runtime)
        vetoes = vetoes or Vetoes()
        report, touched = self._rewrite(start, stop_after, vetoes)
        while stop_after is None and (vain := not_worth_rolling(report, self._chosen.rules) - self._written_out):
            self._written_out |= vain
            vetoes.patches.clear()
            start = load_in_opset(self.model, wanted, abilities, self._chosen.node_rules, self.runtime)
            report, touched = self._rewrite(start, stop_after, vetoes)
        if start.migration is not None and not start.needed and not report.changed and stop_after is None:
            start = load_in_opset(self.model, "keep", abilities)
            report, touched = self._rewrite(start, stop_after, vetoes)
        elif not report.changed and not start.needed and not report.loops:
            if touched is not None or start.migration is not None:
                start = load_in_opset(self.model, "keep", abilities)
            touched = False
        report.migrated = start.migration is not None and start.migration.source != start.migration.target
        fitted = fit_versions(start.loaded.model, self.runtime) if self.runtime is not None else []
        report.messages += fitted
        return Outcome(start.loaded, report, bool(touched) or report.migrated or bool(fitted))

    def _rewrite(self, start: InOpset, stop_after: int | None, vetoes: Vetoes) -> tuple[Report, bool | None]:
        """Rewrite in place, and report; and say whether anything was done, None where the model is as it was loaded."""
        work = Work(self._chosen, start, vetoes, stop_after, self._written_out)
        for stage in STAGES:
            if not work.is_over:
                stage(work)
        report = work.report
        report.target, report.tied = self._chosen.target.name, bool(start.loaded.tied)
        report.messages = work.messages + report.messages
        report.fixed = work.is_fixed
        return report, work.is_touched
