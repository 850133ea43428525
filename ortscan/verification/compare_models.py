"""Compare two models: prepare inputs, create sessions, run all cases, and draw the conclusion.

Works around ORT-DEQUANTIZED-OUTER-WEIGHTS: if onnxruntime cannot load the original with graph
optimisation, graph optimisation is turned off for the original.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from ortscan.modelio.source import ModelSource, changed_source, initializer_bytes
from ortscan.ort.element_types import rounding
from ortscan.running.budget import LARGE_FOLDED, RUN_SECONDS
from ortscan.running.crash_risks import crash_risks
from ortscan.running.graph_index import all_nodes
from ortscan.running.own_process import OwnProcessRunner
from ortscan.running.runner import ModelSession, Runner, on_one_thread
from ortscan.running.specs import SessionSpec, output_specs
from ortscan.verification.compare_settings import CPU, CompareSettings
from ortscan.verification.inputs.interface import interface_differences
from ortscan.verification.inputs.prepare import InputPlan, prepare
from ortscan.verification.judge.blame import blame, first_inner_difference
from ortscan.verification.judge.compare_outputs import Comparer, RunLimit
from ortscan.verification.judge.guards import Guards
from ortscan.verification.judge.judge import Judge, Judged
from ortscan.verification.judge.precision import RECURRENT, SWALLOWING, coarsest_floats, outputs_of
from ortscan.verification.judge.series import run_all
from ortscan.verification.judge.tolerances import Tolerances
from ortscan.verification.judge.verdict import RecordedOutcome, compare_with_records, conclude, result_without_runs
from ortscan.verification.oracle.in_double import in_double
from ortscan.verification.oracle.rounding_noise import noisy_source
from ortscan.verification.oracle.runnable import reference_oracle, runnable_oracle
from ortscan.verification.oracle.sound import sound_oracle, unsound_loops, with_declared_sizes
from ortscan.verification.result import Verification

if TYPE_CHECKING:
    pass

__all__ = ["compare_models", "static_problems"]

_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
_OF_A_NODE = 16.0
"""The error that a recurrent node may have in float32, in roundings of the number 1."""
_SMALL_BYTES = 1 << 20
"""A comparison runs on one thread if both models together have at most this many bytes of weights. More threads make such short
runs slower, because they wait for each other.
"""
_SHORTEST_START = 1.0
"""The seconds that creating a session may take in any case, even beyond the budget."""
_BYTES_A_SECOND, _MOST_MORE = 16 << 20, 4.0
"""The additional time for reading weights on a busy machine: the bytes read in a second, and the most seconds added."""
_LARGEST_INSIDE = 256 << 20
"""Inner values are compared if outputs differ and the model has at most this many bytes of weights."""
_UNOPTIMISED = "the original ran without onnxruntime's optimisation, which rejects it: {}"


def static_problems(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Return the problems of the original and the rewritten model that are found without running them.

    The problems are differences of the interfaces, nodes of either model that would crash onnxruntime, and loops of the rewritten
    model that onnxruntime computes wrongly. If there is a problem, the models should not be run.
    """
    problems = [f"the original would crash onnxruntime: {risk}" for risk in crash_risks(before)]
    problems += [f"the result would crash onnxruntime: {risk}" for risk in crash_risks(after)]
    problems += [f"the result is computed wrongly by onnxruntime: {loop}" for loop in unsound_loops(after)]
    return interface_differences(before, after) + problems


def compare_models(
    old: ModelSource,
    new: ModelSource,
    specs: Sequence[SessionSpec],
    sizes: Mapping[str, int],
    sets: Sequence[Mapping[str, Any]],
    settings: CompareSettings,
    recorded: Sequence[Mapping[str, Any]] = (),
) -> Verification:
    """Run both models on the caller's inputs, and compare the outputs.

    If the caller's sets of inputs have no value for an input, values are generated for it.

    Args:
        old: the original.
        new: the rewritten model.
        specs: the declared inputs of the models.
        sizes: the sizes of free dimensions that the caller chose.
        sets: the caller's sets of inputs, each as a mapping from names to values. A set may be empty.
        settings: the settings of the comparison.
        recorded: for each set, the outputs that were recorded with it, by name. Both models are also compared with these outputs.
    """
    budget, stack = settings.budget, settings.stack
    names = [spec.name for spec in output_specs(old.proto.graph)]
    coarsest = coarsest_floats(old.proto)
    notes = []
    if unsound_loops(old.proto):
        notes.append(
            "the original ran with Identity nodes at outputs of loop bodies, which onnxruntime would otherwise compute wrongly"
        )
        old = changed_source(old, sound_oracle(old.proto), stack)
    old, changes = runnable_oracle(old, new, stack)
    notes += changes
    guards = [Guards(source, stack) for source in (old, new)]

    def prepared(specs: Sequence[SessionSpec], values: Mapping[str, Any]) -> InputPlan:
        watched = [each.watched for each in guards]
        return prepare((old.proto, new.proto), watched, specs, sizes, values, settings.seed, settings.level, budget)

    plans = [prepared(specs, values) for values in sets]
    if too_large := dict.fromkeys(reason for plan in plans for reason in plan.too_large):
        return result_without_runs(names, list(too_large), notes, inconclusive=True)
    may_crash = settings.configure is None and any(
        plan.may_crash or plan.inputs.inner_sizes.largest_fixed()[0] > LARGE_FOLDED for plan in plans
    )
    configure = settings.configure
    if configure is None and initializer_bytes(old.proto) + initializer_bytes(new.proto) <= _SMALL_BYTES:
        configure = on_one_thread

    def runs(
        source: ModelSource, providers: Sequence[Any] = CPU, optimise: bool = True, outputs: Sequence[str] = names
    ) -> ModelSession:
        seconds = max(_SHORTEST_START + min(_MOST_MORE, initializer_bytes(source.proto) / _BYTES_A_SECOND), budget.left())
        if not may_crash:
            return Runner(source, outputs, providers, configure, optimise, seconds)
        worker = OwnProcessRunner(
            source, outputs, providers, optimise, seconds, budget.process_bytes(initializer_bytes(source.proto))
        )
        stack.callback(worker.close)
        return worker

    reference = settings.reference

    def expected(source: ModelSource) -> ModelSession:
        return runs(source) if reference is None else reference.around(runs(source, outputs=reference.outputs))

    computed = old if reference is None else reference.source
    before, after = expected(computed), runs(new, settings.providers)
    if reference is None and before.error is not None and not before.loading_timed_out and after.error is None:
        before, computed, changes = _runnable_replacement(old, before, runs, stack)
        notes += changes
    for label, side in (("original", before), ("result", after)):
        if side.error is not None:
            spent = side.loading_timed_out and budget.is_spent()
            problem = f"the {label} was not loaded: {side.error}" if spent else f"the {label} does not load: {side.error}"
            return result_without_runs(names, [problem], notes, inconclusive=spent or side is before)
    notes += dict.fromkeys(note for plan in plans for note in plan.notes)
    if problems := dict.fromkeys(problem for plan in plans for problem in plan.problems):
        return result_without_runs(names, list(problems), notes, inconclusive=True)

    nodes = [node for node, _ in all_nodes(old.proto)]
    looped = any(node.op_type == "Loop" for node in nodes)
    recurrent = outputs_of(old.proto, RECURRENT) | outputs_of(new.proto, RECURRENT)
    limit = RunLimit(budget, RUN_SECONDS if looped and not any(sets) else None)
    comparer = Comparer(
        before,
        {
            name: Tolerances(settings.rtol, settings.atol, kind, _OF_A_NODE if name in recurrent and kind == np.float32 else 1.0)
            for name, kind in coarsest.items()
        },
        limit,
        shapes_vary=looped or reference is not None,
        with_sizes=cache(lambda: runs(changed_source(old, with_declared_sizes(old.proto), stack))),
        noisy=cache(lambda: None if (noisy := noisy_source(computed, stack)) is None else expected(noisy)),
        exact=cache(lambda: None if (wide := in_double(computed, stack)) is None else expected(wide)),
        nan_hiding=outputs_of(old.proto, SWALLOWING) | outputs_of(new.proto, SWALLOWING),
        draws=any(node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2) for node in nodes),
    )
    judge = Judge(before, after, comparer, limit, () if may_crash else guards)
    not_tried = [what for plan in plans for what in plan.not_tried]
    judged = run_all(judge, plans, lambda plan, specs: prepared(specs, plan.inputs.fixed), notes, not_tried)
    records = compare_with_records(judge, sets, recorded) if any(recorded) else RecordedOutcome()
    origin = []
    if (witness := next((result for result in judged if result.witness is not None), None)) is not None:
        inside = "" if may_crash or budget.is_spent() else _first_inner_difference(old, new, witness, settings, comparer)
        origin = [blame(old.proto, comparer, witness, lambda: runs(old, optimise=False)), inside]
    return conclude(judge, judged, notes, list(dict.fromkeys(not_tried)), records, old.proto, "; ".join(filter(None, origin)))


def _runnable_replacement(
    old: ModelSource, refused: ModelSession, runs: Callable[..., ModelSession], stack: ExitStack
) -> tuple[ModelSession, ModelSource, list[str]]:
    """Return a model that replaces the original, which onnxruntime rejects.

    In the replacement, Python computes the nodes for which onnxruntime has no kernel. If that is impossible, the replacement is the
    original itself, in a session without graph optimisation.

    Args:
        old: the original.
        refused: the session of the original. Its ``error`` says why onnxruntime rejects the original.
        runs: a function that creates a session of a model.
        stack: removes temporary files at the end of the comparison.

    Returns:
        A session of the replacement, the replacement, and notes for the report. If no replacement runs: ``refused``, ``old``, [].
    """
    assert refused.error is not None
    stand_in = reference_oracle(old, refused.error, stack)
    if stand_in is not None:
        return runs(stand_in[0]), *stand_in
    plain = runs(old, optimise=False)
    return (refused, old, []) if plain.error is not None else (plain, old, [_UNOPTIMISED.format(refused.error)])


def _first_inner_difference(
    old: ModelSource, new: ModelSource, witness: Judged, settings: CompareSettings, comparer: Comparer
) -> str:
    """Return a phrase about the first value inside the models that differs, or an empty string.

    ``witness`` is a case in which outputs differ. Both models run again on the inputs of this case.
    """
    if witness.witness is None or initializer_bytes(old.proto) > _LARGEST_INSIDE:
        return ""
    kinds = [each.computed for each in comparer.tolerances.values() if each.computed is not None]
    usual = Tolerances(settings.rtol, settings.atol, max(kinds, key=rounding, default=None))

    def runs(source: ModelSource, names: Sequence[str]) -> ModelSession:
        return Runner(source, names, CPU, settings.configure)

    return first_inner_difference(old, new, witness.witness[0], runs, usual, settings.stack)
