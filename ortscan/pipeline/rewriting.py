"""One model on its way through all rewrites, under the options it was given; the way can be gone again, as far as any patch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ortscan.modelio import (
    LoadedModel,
    ModelLike,
)
from ortscan.modelio.reading import read_from_pipe
from ortscan.options import (
    DEFAULT_MEMORY_BUDGET,
    check_flags,
    left_out,
    memory_bytes,
    most_steps,
    names_of,
    rules_for,
    wanted,
)
from ortscan.pipeline.fixed_shapes import fixed_sizes, merged_shapes
from ortscan.pipeline.load_in_opset import InOpset, load_in_opset
from ortscan.pipeline.stages import STAGES, Chosen, Work
from ortscan.targets import target_named, unroll_limits
from ortscan.verification.given.arguments import given_shapes
from rewrites.base.report import Report
from rewrites.base.vetoes import Veto, Vetoes
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
        native: bool = False,
        passes: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        debug: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.model: ModelLike = read_from_pipe(model)
        self.opset, self.debug, chosen = opset, debug, target_named(target)
        check_flags(fast_math=fast_math, custom_ops=custom_ops, native=native, debug=debug)
        unwanted = names_of("skip", skip)
        rules = rules_for(wanted(passes, chosen, custom_ops=custom_ops, native=native), unwanted)
        self._chosen = Chosen(
            chosen,
            rules,
            [rule for rule in NODE_RULES if rule in rules or rule.use != "asked"],
            left_out(unwanted),
            memory_bytes(memory_budget),
            given_shapes(shapes),
            fixed_sizes(fix_shapes),
            unroll_limits(chosen, most_steps(max_unroll)),
            fast_math,
            custom_ops,
            debug,
            progress,
        )
        self.fixed, self.sizes = self._chosen.fixed, merged_shapes(shapes, fix_shapes)

    def once(self, stop_after: int | None = None, vetoes: Vetoes | None = None, opset: int | str | None = None) -> Outcome:
        """Rewrite the model, with so many patches only, and without what is vetoed; in ``opset`` where another is given."""
        wanted, abilities = self.opset if opset is None else opset, self._chosen.target.abilities
        start = load_in_opset(self.model, wanted, abilities, self._chosen.node_rules)
        report, touched = self._rewrite(start, stop_after, vetoes or Vetoes())
        if start.migration is not None and not start.needed and not report.changed and stop_after is None:
            start = load_in_opset(self.model, "keep", abilities)
            report, touched = self._rewrite(start, stop_after, vetoes or Vetoes())
        elif not report.changed and not start.needed and not report.loops:
            if touched is not None or start.migration is not None:
                start = load_in_opset(self.model, "keep", abilities)
            touched = False
        report.migrated = start.migration is not None and start.migration.source != start.migration.target
        return Outcome(start.loaded, report, bool(touched) or report.migrated)

    def _rewrite(self, start: InOpset, stop_after: int | None, vetoes: Vetoes) -> tuple[Report, bool | None]:
        """Rewrite in place, and report; and say whether anything was done, None where the model is as it was loaded."""
        work = Work(self._chosen, start, vetoes, stop_after)
        for stage in STAGES:
            if not work.is_over:
                stage(work)
        report = work.report
        report.target, report.messages, report.tied = self._chosen.target.name, work.messages, bool(start.loaded.tied)
        report.fixed = work.fixed is not None
        return report, work.is_touched
