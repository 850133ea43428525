"""Does a changed model compute what the original computes? Asked of onnxruntime, on inputs made up or given."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import onnx

from ortscan.verification.arguments import check_comparison, given_shapes
from ortscan.verification.compare import Tolerances, compare_values
from ortscan.verification.crash_risks import crash_risks
from ortscan.verification.element_types import numpy_type
from ortscan.verification.endless import may_run_for_ever
from ortscan.verification.given import Given, read_inputs, with_shapes
from ortscan.verification.interface import interface_differences
from ortscan.verification.judge import Judge, Judged
from ortscan.verification.own_process import GuardedRunner
from ortscan.verification.precision import coarsest_float
from ortscan.verification.preparing import Prepared, prepare
from ortscan.verification.reference_oracle import reference_oracle
from ortscan.verification.result import Verification
from ortscan.verification.runnable_oracle import runnable_oracle
from ortscan.verification.runner import Runner, Runs, check_providers
from ortscan.verification.series import run_series, untried_sizes
from ortscan.verification.sound_oracle import sound_oracle, unsound_scans
from ortscan.verification.source import AnyModel, Source, changed_source, open_source
from ortscan.verification.specs import input_specs, output_specs, overridable_names
from ortscan.verification.subgraphs import all_nodes
from ortscan.verification.verdict import conclude, refuse

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["verify"]

_RANDOM = ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
_CPU = ("CPUExecutionProvider",)


def verify(
    before: AnyModel,
    after: AnyModel,
    *,
    inputs: Given | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    providers: Sequence[Any] | None = None,
    configure: "Callable[[ort.SessionOptions], object] | None" = None,
    time_limit: float = 10.0,
) -> Verification:
    """Run two models on the same inputs on onnxruntime and compare what they compute.

    ``before`` is right by definition. Both run with onnxruntime's default optimisation, as they would in use: switching it off
    on one side would add its own roundings, on both it would check what nobody runs. A model that may make onnxruntime kill the
    process runs in one of its own, unless ``configure`` is given. Free dimensions, trip counts, lengths
    and indices take a range of values; all cases are in the outcome, those the original refuses too. A check that
    compared nothing is not ok.

    Args:
        before: the original: a path, bytes, onnx.ModelProto or onnx_ir.Model. It is not changed.
        after: what is to be checked, likewise.
        inputs: values to use in place of made-up ones: one dict of input name to array (a list of arrays for a sequence), a
            list of such dicts, or the path of an .npz with keys ``name`` or ``in:name``. Inputs left out are made up.
        seed: what made-up values are drawn with.
        rtol: float error tolerated relative to the largest magnitude of the output in that case; default by the coarsest float
            type the original computes with: float64 1e-9, float32 1e-4, float16 1e-2, bfloat16 5e-2.
        atol: float error tolerated besides; default likewise: 1e-10, 1e-5, 4e-3, 3e-2, and less for outputs that stay below 1.
            Integers, booleans and strings must be the same whatever the tolerances.
        shapes: sizes of named inputs, such as ``{"x": [64, 1, 128]}``; None leaves a dimension free.
        providers: where ``after`` runs; default the CPU, where ``before`` always runs.
        configure: called with the SessionOptions of each session before it is made, to register custom operators or to set
            threads.
        time_limit: seconds after which a run is stopped, where only the data stops a Loop.

    Raises:
        ModelFileError: a model or an .npz cannot be read.
        OptionError: an option is not of its kind; ``inputs``, ``shapes`` or ``providers`` do not fit the model or this
            onnxruntime.
    """
    check_comparison(seed, rtol, atol, providers)
    fixed = given_shapes(shapes)
    with ExitStack() as stack:
        old, new = open_source(before, stack), open_source(after, stack)
        check_providers(providers or _CPU)
        names = [spec.name for spec in output_specs(old.proto.graph)]
        specs, sizes = with_shapes(input_specs(old.proto.graph), fixed)
        sets = [{}] if inputs is None else read_inputs(inputs, specs, overridable_names(old.proto))
        problems = _problems_at_sight(old.proto, new.proto)
        if problems:
            return refuse(names, problems)
        notes = []
        if unsound_scans(old.proto):
            notes.append("the original ran with Identity added at outputs of Scan bodies that onnxruntime computes wrongly")
            old = changed_source(old, sound_oracle(old.proto), stack)
        coarsest = coarsest_float(old.proto)
        old, changes = runnable_oracle(old, new, stack)
        notes += changes
        plans = [prepare(old.proto, new.proto, specs, sizes, given, seed) for given in sets]
        perilous = configure is None and any(plan.perilous for plan in plans)

        def runs(source: Source, providers: Sequence[Any], optimise: bool = True) -> Runs:
            if not perilous:
                return Runner(source, names, providers, configure, optimise)
            guarded = GuardedRunner(source, names, providers, optimise)
            stack.callback(guarded.close)
            return guarded

        oracle, runner = runs(old, _CPU), runs(new, providers or _CPU)
        stand_in = None if oracle.error is None or runner.error is not None else reference_oracle(old, oracle.error, stack)
        if stand_in is not None:
            oracle = runs(stand_in[0], _CPU)
            notes += stand_in[1]
        for label, side in (("original", oracle), ("result", runner)):
            if side.error is not None:
                return refuse(names, [f"the {label} does not load: {side.error}"], notes, inconclusive=side is oracle)
        notes += dict.fromkeys(note for plan in plans for note in plan.notes)
        problems = list(dict.fromkeys(problem for plan in plans for problem in plan.problems))
        if problems:
            return refuse(names, problems, notes, inconclusive=True)
        judge = Judge(
            before=oracle,
            after=runner,
            tolerances=Tolerances(rtol, atol, None if coarsest is None else numpy_type(coarsest)),
            limits=(_limit(old.proto, time_limit), _limit(new.proto, time_limit)),
            shapes_vary=any(node.op_type == "Loop" for node, _ in all_nodes(old.proto)),
            draws=any(_is_random(node) for node, _ in all_nodes(old.proto)),
        )
        judged = _run(judge, plans, notes)
        notes += _blame(judge, judged, lambda: runs(old, _CPU, optimise=False))
        return conclude(judge, judged, notes)


def _problems_at_sight(before: onnx.ModelProto, after: onnx.ModelProto) -> list[str]:
    """Why the two need not, or must not, be run."""
    problems = [f"the original would crash onnxruntime: {risk}" for risk in crash_risks(before)]
    problems += [f"the result would crash onnxruntime: {risk}" for risk in crash_risks(after)]
    problems += [f"the result is computed wrongly by onnxruntime: {scan}" for scan in unsound_scans(after)]
    return interface_differences(before, after) + problems


def _is_random(node: onnx.NodeProto) -> bool:
    return node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2)


def _limit(proto: onnx.ModelProto, seconds: float) -> float | None:
    return seconds if may_run_for_ever(proto) else None


def _run(judge: Judge, plans: Sequence[Prepared], notes: list[str]) -> list[Judged]:
    judged = []
    for position, plan in enumerate(plans):
        series = run_series(judge, plan.inputs, plan.learned)
        if any(one.case.status != "skipped" for one in series):
            notes += [f"the original did not run with '{name}' above 1" for name in untried_sizes(series, plan.inputs)]
        for one in series:
            varied = {**one.case.varied, "input set": position} if len(plans) > 1 else one.case.varied
            judged.append(replace(one, case=replace(one.case, varied=varied)))
    return judged


def _blame(judge: Judge, judged: Sequence[Judged], plain: Callable[[], Runs]) -> list[str]:
    """Whether the first difference is of onnxruntime's own making."""
    first = next((one for one in judged if one.witness is not None), None)
    if first is None or first.witness is None:
        return []
    feed, after = first.witness
    runner = plain()
    outcome = None if runner.error is not None else runner.run(feed, judge.limits[0])
    if outcome is None or outcome.values is None:
        return []
    pairs = zip(judge.before.outputs, outcome.values, after, strict=True)
    if any(compare_values(old, new, judge.tolerances).reason for name, old, new in pairs if name in first.gaps):
        return []
    return ["with onnxruntime's graph optimisation off the original computes what the result computes"]
