"""Rewrite a model with the options of ``optimize``, optionally only up to a given patch."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from ortscan.modelio import AnyModel, LoadedModel, ModelLike, with_constant_inputs
from ortscan.modelio.reading import read_from_pipe
from ortscan.modelio.source import open_source
from ortscan.option_types import check_flags
from ortscan.pipeline.fixed_shapes import fixed_sizes, merged_shapes
from ortscan.pipeline.preparation import InOpset, load_in_opset
from ortscan.pipeline.stages import STAGES, CheckedOptions, Work
from ortscan.rule_choice import names_of, passes_with_added_rules, rules_for, skipped_model_rules
from ortscan.running.specs import input_specs
from ortscan.soundness.lacking import fit_versions
from ortscan.targets import target_named
from ortscan.verb_options import REWRITING_OPTIONS
from ortscan.verification.inputs.shapes import given_dims, given_shapes, shapes_with_dims
from rewrites.base.errors import OptionError
from rewrites.base.report import RewriteReport
from rewrites.base.vetoes import Veto, Vetoes
from rewrites.driver.rolling import not_worth_rolling
from rewrites.native.functions import IR_VERSION
from rewrites.native.operator_names import DOMAIN

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ortscan.options import RewritingOptions
    from ortscan.verification import Verification

__all__ = ["Rewriting", "Rewritten"]


class Rewritten(NamedTuple):
    """A rewritten model and its report.

    Args:
        loaded: the model.
        report: what became of each loop.
        is_touched: True if the model differs from the original in any way.
        vetoes: the patches that were left out, because they made the result faulty.
        verification: the comparison with the original; None if there was none.
    """

    loaded: LoadedModel
    report: RewriteReport
    is_touched: bool
    vetoes: Sequence[Veto] = ()
    verification: "Verification | None" = None


class Rewriting:
    """A model and the options for rewriting it. The method ``once`` rewrites the model.

    The constructor raises OptionError if an option has an invalid value.

    Args:
        model: the model.
        debug: check the whole model after each patch.
        progress: a function that is called with the number of finished loops and the number of all loops.
        options: see ``RewritingOptions``.

    Attributes:
        fixed: the shapes of inputs to build into the model, from the options ``fix_shapes`` and ``fix_dims``.
        sizes: the shapes of inputs at which models are compared: the typical shapes, overridden by ``fixed``.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        debug: bool = False,
        progress: Callable[[int, int], None] | None = None,
        **options: "Unpack[RewritingOptions]",
    ) -> None:
        self.model: AnyModel = read_from_pipe(model)
        for name in options.keys() - REWRITING_OPTIONS.keys():
            raise TypeError(f"Rewriting() got an unexpected keyword argument '{name}'")
        values: dict[str, Any] = {name: option.default for name, option in REWRITING_OPTIONS.items()} | {**options}
        target = target_named(values["target"])
        check_flags(debug=debug, **{name: values[name] for name, option in REWRITING_OPTIONS.items() if option.is_flag})
        values |= {name: option.check(values[name]) for name, option in REWRITING_OPTIONS.items()}
        self.opset, self.runtime, self.debug = values["opset"], values["runtime"], debug
        if values["native"] and self.runtime is not None and self.runtime.ir_version < IR_VERSION:
            raise OptionError(f"native loops need IR version {IR_VERSION}; {self.runtime} loads at most {self.runtime.ir_version}.")
        skip = names_of("skip", values["skip"])
        typical = self._sizes(given_shapes(values["shapes"]), values["dims"], "dims")
        self.fixed = self._sizes(fixed_sizes(values["fix_shapes"]), values["fix_dims"], "fix_dims")
        passes = passes_with_added_rules(values["passes"], target, custom_ops=values["custom_ops"], native=values["native"])
        rules = rules_for(passes, skip)
        self._chosen = CheckedOptions(target, rules, skipped_model_rules(skip), typical, self.fixed, values, debug, progress)
        self.model = with_constant_inputs(self.model, values["fix_inputs"], values["freeze"])
        self._written_out = frozenset[str]()
        self.sizes = merged_shapes(typical, self.fixed)

    def _sizes(self, shapes: Mapping[str, Sequence[int | None]], dims: Any, option: str) -> dict[str, Sequence[int | None]]:
        """Return the shapes of inputs ``shapes``, completed by the sizes of named dimensions in ``dims``.

        An example of ``dims`` is ``{"T": 64}``. ``option`` is the name of this option in error messages.
        """
        sizes = given_dims(dims, option)
        if not sizes:
            return dict(shapes)
        with ExitStack() as stack:
            return shapes_with_dims(input_specs(open_source(self.model, stack).proto.graph), shapes, sizes, option)

    def once(self, stop_after: int | None = None, vetoes: Vetoes | None = None, opset: int | str | None = None) -> Rewritten:
        """Rewrite the model once, without looking for faults in the result.

        Args:
            stop_after: the maximum number of patches; None for any number.
            vetoes: the patches to leave out.
            opset: the opset to use instead of the option ``opset``; None to use the option.
        """
        opset, abilities = self.opset if opset is None else opset, self._chosen.target.abilities
        start = load_in_opset(self.model, opset, abilities, self._chosen.node_rules, self.runtime)
        vetoes = vetoes or Vetoes()
        report, touched = self._rewrite(start, stop_after, vetoes)
        while stop_after is None and (vain := not_worth_rolling(report, self._chosen.rules) - self._written_out):
            self._written_out |= vain
            vetoes.patches.clear()
            start = load_in_opset(self.model, opset, abilities, self._chosen.node_rules, self.runtime)
            report, touched = self._rewrite(start, stop_after, vetoes)
        if start.migration is not None and not start.needed and not report.changed and stop_after is None:
            start = load_in_opset(self.model, "keep", abilities)
            report, touched = self._rewrite(start, stop_after, vetoes)
        if not report.changed and not start.needed and (stop_after is None or not report.loops):
            if touched is not None or start.migration is not None:
                start = load_in_opset(self.model, "keep", abilities)
            report.operators_after = report.operators_before
            start.loaded.unchanged, touched = self.model, False
        if start.migration is not None and start.migration.source != start.migration.target:
            report.migrated, report.operators_before = True, start.migration.operators
        fitted = fit_versions(start.loaded.model, self.runtime) if self.runtime is not None else []
        report.messages += fitted
        if fitted:
            start.loaded.unchanged = None
        return Rewritten(start.loaded, report, bool(touched) or report.migrated or bool(fitted))

    def _rewrite(self, start: InOpset, stop_after: int | None, vetoes: Vetoes) -> tuple[RewriteReport, bool | None]:
        """Rewrite the loaded model in place. Return a pair: the report, and ``Work.is_touched``.

        ``Work.is_touched`` says if the model was changed.
        """
        work = Work(self._chosen, start, vetoes, stop_after, self._written_out)
        plans = {key for key in start.loaded.model.functions if key[0] == DOMAIN and DOMAIN not in self._chosen.target.domains}
        for stage in STAGES:
            if not work.is_over:
                stage(work)
        report = work.report
        report.target, report.tied = self._chosen.target.name, bool(start.loaded.tied)
        report.messages = work.messages + report.messages
        report.fixed, report.unplanned = work.is_fixed, bool(plans - start.loaded.model.functions.keys())
        return report, work.is_touched
