"""Comparing two models that are open: make sessions, run all cases, draw the conclusion.

Works round ORT-DEQUANTIZED-OUTER-WEIGHTS: an original that is refused once it is optimised runs as it is.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from ortscan.modelio.source import Source, changed_source, weight
from ortscan.ort.element_types import rounding
from ortscan.running.budget import LARGE_FOLDED, RUN_SECONDS, Budget, Level
from ortscan.running.crash_risks import crash_risks
from ortscan.running.graph_index import all_nodes
from ortscan.running.own_process import OwnProcessRunner
from ortscan.running.runner import Runner, Runs, on_one_thread
from ortscan.running.specs import Spec, output_specs
from ortscan.verification.cases.preparing import Prepared, prepare
from ortscan.verification.closeness.compare_values import Tolerances
from ortscan.verification.closeness.precision import coarsest_floats
from ortscan.verification.closeness.recurrent_outputs import recurrent_outputs, swallowing_outputs
from ortscan.verification.closeness.rounding_noise import noisy_source
from ortscan.verification.given.interface import interface_differences, quoted
from ortscan.verification.judging.blame import blame
from ortscan.verification.judging.first_inside import first_inside
from ortscan.verification.judging.guards import Guards
from ortscan.verification.judging.judge import Judge, Judged
from ortscan.verification.judging.recorded_outputs import Records, compare_with_records
from ortscan.verification.judging.series import run_series, untried_integers, untried_named, untried_sizes
from ortscan.verification.judging.verdict import conclude, refuse
from ortscan.verification.oracle.in_double import in_double
from ortscan.verification.oracle.reference import reference_oracle
from ortscan.verification.oracle.runnable import runnable_oracle
from ortscan.verification.oracle.sound import sound_oracle, unsound_loops
from ortscan.verification.oracle.told_sizes import with_told_sizes
from ortscan.verification.result import Verification
from ortscan.verification.sizes.shared_names import shared_names, told_apart

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["Settings", "compare_models", "problems_at_sight"]

_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
_OF_A_NODE = 16.0
_SMALL_BYTES = 1 << 20
"""Weights of models whose runs are too short for more threads to make them shorter."""
_SHORTEST_START = 1.0
"""Seconds that making a session may take, whatever the budget."""
_BYTES_A_SECOND, _MOST_MORE = 16 << 20, 4.0
"""How much longer that may take where there are so many bytes of weights to read, on a machine with other work."""
_LARGEST_INSIDE = 256 << 20
"""Bytes of weights, of models whose inner values are compared where outputs differ."""
_UNOPTIMISED = "the original ran without onnxruntime's optimisation, which fails on it: {}"
_CPU = ("CPUExecutionProvider",)


@dataclass(frozen=True)
class Settings:
    """How to compare. ``configure``, where given, is called with the SessionOptions of each session."""

    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    providers: Sequence[Any] = _CPU
    configure: "Callable[[ort.SessionOptions], object] | None" = None
    level: Level = "full"


def problems_at_sight(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Return why the two need not, or must not, be run."""
    problems = [f"the original would crash onnxruntime: {risk}" for risk in crash_risks(before)]
    problems += [f"the result would crash onnxruntime: {risk}" for risk in crash_risks(after)]
    problems += [f"the result is computed wrongly by onnxruntime: {loop}" for loop in unsound_loops(after)]
    return interface_differences(before, after) + problems


def compare_models(
    old: Source,
    new: Source,
    specs: Sequence[Spec],
    sizes: Mapping[str, int],
    sets: Sequence[Mapping[str, Any]],
    settings: Settings,
    budget: Budget,
    stack: ExitStack,
    recorded: Sequence[Mapping[str, Any]] = (),
) -> Verification:
    """Run both on ``sets`` of given inputs and made-up values for the rest, with the free dimensions in ``sizes`` fixed.

    ``recorded``: what each of the sets is known to give, by the names of outputs.
    """
    names = [spec.name for spec in output_specs(old.proto.graph)]
    notes = []
    if unsound_loops(old.proto):
        notes.append("the original ran with Identity added at outputs of loop bodies that onnxruntime computes wrongly")
        old = changed_source(old, sound_oracle(old.proto), stack)
    coarsest = coarsest_floats(old.proto)
    old, changes = runnable_oracle(old, new, stack)
    notes += changes
    guards = [Guards(source, stack) for source in (old, new)]
    watched = [each.watched for each in guards]

    def prepared(specs: Sequence[Spec], given: Mapping[str, Any]) -> Prepared:
        return prepare((old.proto, new.proto), watched, specs, sizes, given, settings.seed, settings.level, budget)

    plans = [prepared(specs, given) for given in sets]
    too_large = list(dict.fromkeys(reason for plan in plans for reason in plan.too_large))
    if too_large:
        return refuse(names, too_large, notes, inconclusive=True)
    perilous = settings.configure is None and any(plan.perilous or plan.inputs.inner.fixed()[0] > LARGE_FOLDED for plan in plans)

    configure = settings.configure
    if configure is None and settings.level == "quick" and weight(old.proto) + weight(new.proto) <= _SMALL_BYTES:
        configure = on_one_thread

    def runs(source: Source, providers: Sequence[Any], optimise: bool = True) -> Runs:
        seconds = max(_SHORTEST_START + min(_MOST_MORE, weight(source.proto) / _BYTES_A_SECOND), budget.left())
        if not perilous:
            return Runner(source, names, providers, configure, optimise, seconds)
        apart = OwnProcessRunner(source, names, providers, optimise, seconds, budget.process_bytes(weight(source.proto)))
        stack.callback(apart.close)
        return apart

    oracle, runner = runs(old, _CPU), runs(new, settings.providers)
    refused = oracle.error
    stand_in = None
    if refused is not None and not oracle.late and runner.error is None:
        stand_in = reference_oracle(old, refused, stack)
    if stand_in is not None:
        oracle = runs(stand_in[0], _CPU)
        notes += stand_in[1]
    elif refused is not None and not oracle.late and runner.error is None:
        oracle = _running(oracle, runs(old, _CPU, optimise=False), notes)
    for label, side in (("original", oracle), ("result", runner)):
        if side.error is not None:
            spent = side.late and budget.is_spent()
            said = f"the {label} was not loaded: {side.error}" if spent else f"the {label} does not load: {side.error}"
            return refuse(names, [said], notes, inconclusive=spent or side is oracle)
    notes += dict.fromkeys(note for plan in plans for note in plan.notes)
    problems = list(dict.fromkeys(problem for plan in plans for problem in plan.problems))
    if problems:
        return refuse(names, problems, notes, inconclusive=True)
    looped = any(node.op_type == "Loop" for node, _ in all_nodes(old.proto))
    computed = old if stand_in is None else stand_in[0]
    recurrent = recurrent_outputs(old.proto) | recurrent_outputs(new.proto)
    judge = Judge(
        before=oracle,
        after=runner,
        tolerances={
            name: Tolerances(settings.rtol, settings.atol, kind, _OF_A_NODE if name in recurrent and kind == np.float32 else 1.0)
            for name, kind in coarsest.items()
        },
        budget=budget,
        patience=RUN_SECONDS if looped and not any(sets) else None,
        shapes_vary=looped,
        noisy=functools.cache(lambda: None if (noisy := noisy_source(computed, stack)) is None else runs(noisy, _CPU)),
        exact=functools.cache(lambda: None if (wide := in_double(computed, stack)) is None else runs(wide, _CPU)),
        told=functools.cache(lambda: runs(changed_source(old, with_told_sizes(old.proto), stack), _CPU)),
        guards=() if perilous else guards,
        swallowing=swallowing_outputs(old.proto) | swallowing_outputs(new.proto),
        draws=any(_is_random(node) for node, _ in all_nodes(old.proto)),
    )
    not_tried = [what for plan in plans for what in plan.not_tried]
    judged = _run(judge, plans, lambda plan, specs: prepared(specs, plan.inputs.given), notes, not_tried)
    records = compare_with_records(oracle, runner, sets, recorded, judge.tolerances) if any(recorded) else Records()
    inside = "" if perilous or budget.is_spent() else _inside(old, new, judged, settings, coarsest, stack)
    blamed = blame(old.proto, judge, judged, lambda: runs(old, _CPU, optimise=False))
    where = "; ".join(filter(None, (blamed, inside)))
    return conclude(judge, judged, notes, list(dict.fromkeys(not_tried)), records, old.proto, where)


def _running(refused: Runs, plain: Runs, notes: list[str]) -> Runs:
    """Return of two runs of a model the one that is not optimised, with a note, if that is not refused too."""
    if plain.error is not None:
        return refused
    notes.append(_UNOPTIMISED.format(refused.error))
    return plain


def _inside(
    old: Source,
    new: Source,
    judged: Sequence[Judged],
    settings: Settings,
    coarsest: Mapping[str, "np.dtype[Any] | None"],
    stack: ExitStack,
) -> str:
    """Say which value inside both is the first to differ in the first case that does."""
    witness = next((one.witness for one in judged if one.witness is not None), None)
    if witness is None or weight(old.proto) > _LARGEST_INSIDE:
        return ""
    kinds = [kind for kind in coarsest.values() if kind is not None]
    usual = Tolerances(settings.rtol, settings.atol, max(kinds, key=rounding, default=None))
    return first_inside(old, new, witness[0], lambda one, names: Runner(one, names, _CPU, settings.configure), usual, stack)


def _is_random(node: onnx.NodeProto) -> bool:
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)


def _run(
    judge: Judge,
    plans: Sequence[Prepared],
    prepared: Callable[[Prepared, Sequence[Spec]], Prepared],
    notes: list[str],
    not_tried: list[str],
) -> list[Judged]:
    judged = []
    for position, given in enumerate(plans):
        plan, series = given, run_series(judge, given.inputs, given.learned, given.loose)
        untried = sorted(shared_names(plan.inputs.missing).intersection(untried_sizes(series, plan.inputs)))
        if untried:
            other = prepared(plan, told_apart(plan.inputs.missing, untried))
            found = run_series(judge, other.inputs, other.learned, other.loose)
            if any(one.case.status != "skipped" for one in found):
                plan, series = other, found
                notes.append(f"inputs share names of dimensions that the original takes no common size for: {quoted(untried)}")
        if any(one.case.status != "skipped" for one in series):
            notes += [f"the original did not run with '{name}' above 1" for name in untried_sizes(series, plan.inputs)]
            if plan.inputs.level == "full" and (usual := untried_integers(series, plan.inputs)):
                not_tried.append(f"other than usual values of {quoted(usual)}, such as negative ones")
            if untried_named(series):
                not_tried.append("the values that the models compare inputs with, which the original refuses")
        for one in series:
            varied = {**one.case.varied, "input set": position} if len(plans) > 1 else one.case.varied
            judged.append(replace(one, case=replace(one.case, varied=varied)))
    return judged
