"""Does a changed model compute what the original computes? Asked of onnxruntime, on inputs made up or given."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ortscan.modelio.loading import AnyModel
from ortscan.modelio.source import open_source
from ortscan.running.budget import FULL_BYTES, FULL_SECONDS, QUICK_BYTES, QUICK_SECONDS, Budget, Level
from ortscan.running.crash_risks import crash_risks
from ortscan.running.runner import check_providers
from ortscan.running.specs import input_specs, output_specs, overridable_names
from ortscan.verification.compare_models import Settings, compare_models, problems_at_sight
from ortscan.verification.given.arguments import check_comparison, check_limits, given_shapes
from ortscan.verification.given.inputs import Given, read_inputs, with_shapes
from ortscan.verification.given.interface import interface_differences
from ortscan.verification.given.named_dims import given_dims, shapes_with_dims
from ortscan.verification.given.recorded import read_recorded
from ortscan.verification.judging.verdict import refuse
from ortscan.verification.loop_by_loop.compare_loops import compare_loops, has_loops_of_its_own, is_large
from ortscan.verification.oracle.without_plans import without_plans
from ortscan.verification.result import Verification

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["verify"]

_log = logging.getLogger("ortscan.verification")
_CPU = ("CPUExecutionProvider",)
_LONGEST = 10**6
"""Seconds that a time limit may have; clocks of threads end somewhere beyond."""


def verify(
    before: AnyModel,
    after: AnyModel,
    *,
    inputs: Given | None = None,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    dims: Mapping[str, int] | None = None,
    providers: Sequence[Any] | None = None,
    configure: "Callable[[ort.SessionOptions], object] | None" = None,
    level: Level = "full",
    time_limit: float | None = None,
    memory_limit: int | None = None,
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
            list of such dicts, the path of an .npz with keys ``name`` or ``in:name``, or of a folder of test data
            (``input_0.pb``). Inputs left out are made up. Outputs that were recorded there too (``out:name`` or ``out:0``,
            ``output_0.pb``) are compared with what both models give.
        seed: what made-up values are drawn with.
        rtol: float error tolerated relative to the largest magnitude of the element's own row or column in that case; default by
            the coarsest float type the output is computed from: float64 1e-9, float32 1e-4, float16 1e-2, bfloat16 5e-2.
        atol: float error tolerated besides; default likewise: 1e-10, 1e-5, 4e-3, 3e-2, and less for outputs that stay below 1.
            Integers, booleans and strings must be the same whatever the tolerances.
        shapes: sizes of named inputs, such as ``{"x": [64, 1, 128]}``; None leaves a dimension free.
        dims: sizes of named dimensions, such as ``{"T": 64}``.
        providers: where ``after`` runs; default the CPU, where ``before`` always runs.
        configure: called with the SessionOptions of each session before it is made, to register custom operators or to set
            threads.
        level: ``quick`` tries few and small cases, and of a large model each loop by itself.
        time_limit: seconds after which no more is tried; a run is stopped then. Default QUICK_SECONDS or FULL_SECONDS.
        memory_limit: bytes that made-up inputs may take, and any value whose size is known beforehand. Default QUICK_BYTES or
            FULL_BYTES.

    Raises:
        ModelFileError: a model or an .npz cannot be read.
        OptionError: an option is not of its kind; ``inputs``, ``shapes`` or ``providers`` do not fit the model or this
            onnxruntime.
    """
    check_comparison(seed, rtol, atol, providers)
    check_limits(level, time_limit, memory_limit)
    fixed, named = given_shapes(shapes), given_dims(dims)
    usual = (QUICK_SECONDS, QUICK_BYTES) if level == "quick" else (FULL_SECONDS, FULL_BYTES)
    seconds = usual[0] if time_limit is None else min(time_limit, _LONGEST)
    budget = Budget(seconds, usual[1] if memory_limit is None else memory_limit)
    with ExitStack() as stack:
        old, new = without_plans(open_source(before, stack), stack), open_source(after, stack)
        check_providers(providers or _CPU)
        names = [spec.name for spec in output_specs(old.proto.graph)]
        specs = input_specs(old.proto.graph)
        specs, sizes = with_shapes(specs, shapes_with_dims(specs, fixed, named))
        sets: list[dict[str, Any]] = [{}]
        recorded: Sequence[Mapping[str, Any]] = []
        if inputs is not None:
            inputs, recorded = read_recorded(inputs, specs, output_specs(old.proto.graph))
            sets = read_inputs(inputs, specs, overridable_names(old.proto))
        problems = problems_at_sight(old.proto, new.proto)
        if problems:
            alike = not interface_differences(old.proto, new.proto)
            return refuse(names, problems, inconclusive=alike and bool(crash_risks(old.proto)))
        settings = Settings(seed, rtol, atol, providers or _CPU, configure, level)
        if level == "quick" and inputs is None and is_large(old.proto) and has_loops_of_its_own(old.proto):
            outcome = compare_loops(old, new, specs, sizes, settings, budget, stack)
        else:
            outcome = compare_models(old, new, specs, sizes, sets, settings, budget, stack, recorded)
        outcome = replace(outcome, level=level, limits_hit=tuple(budget.hits))
        _log.info("%s", outcome.summary().splitlines()[0])
        return outcome
