"""Verify that a changed model computes the same as the original.

Both models run on onnxruntime, on generated inputs or on inputs that the caller passes.
"""

import logging
import math
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ortscan.modelio.loading import AnyModel
from ortscan.modelio.source import open_source
from ortscan.running.budget import FULL_BYTES, FULL_SECONDS, QUICK_BYTES, QUICK_SECONDS, Budget, Level
from ortscan.running.crash_risks import crash_risks
from ortscan.running.runner import check_providers
from ortscan.running.specs import SessionSpec, input_specs, output_specs
from ortscan.verification.compare_loops import compare_loops, has_loops_of_its_own, is_large
from ortscan.verification.compare_models import compare_models, static_problems
from ortscan.verification.compare_settings import CompareSettings
from ortscan.verification.inputs.given_inputs import ChosenInputs, Given
from ortscan.verification.inputs.interface import interface_differences
from ortscan.verification.judge.verdict import result_without_runs
from ortscan.verification.oracle.runnable import without_plans
from ortscan.verification.result import Verification
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import shown

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["verify"]

_log = logging.getLogger("ortscan.verification")
_CPU = ("CPUExecutionProvider",)
_LONGEST = 10**6
"""The longest time limit in seconds. Much longer limits would overflow the timers of threads."""


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
    """Run two models on the same inputs on onnxruntime and compare their outputs.

    The outputs of ``before`` are correct by definition. Both models run with onnxruntime's default optimisation, as they would in
    production. A model that may crash the process runs in a subprocess, unless ``configure`` is set. The models run on several sets
    of inputs (cases), with various free dimensions, trip counts, lengths and indices. The result lists all cases, including those
    that the original rejects. If nothing could be compared, the result is not ok.

    Args:
        before: the original: a path, bytes, onnx.ModelProto or onnx_ir.Model. It is not changed.
        after: the changed model, in any of these forms.
        inputs: values to use instead of generated ones: a dict of input names to arrays (a list of arrays for a sequence), a list
            of such dicts, the path of an .npz with keys ``name`` or ``in:name``, or a folder of test data (``input_0.pb``). Missing
            inputs are generated. If the .npz or the folder also contains recorded outputs (``out:name`` or ``out:0``,
            ``output_0.pb``), both models are compared with them.
        seed: the seed of generated values.
        rtol: the tolerance relative to the scale of an element. In a matrix, the scale is the largest magnitude in the element's
            row or column, whichever is smaller. The default depends on the coarsest float type that the output is computed from:
            float64 1e-9, float32 1e-4, float16 1e-2, bfloat16 5e-2.
        atol: the absolute tolerance, which is added to the relative tolerance. The defaults for the same types are 1e-10, 1e-5,
            4e-3 and 3e-2. These defaults are smaller for outputs whose elements are all below 1. Integers, booleans and strings
            must always be equal.
        shapes: shapes of inputs, such as ``{"x": [64, 1, 128]}``; None leaves a dimension free.
        dims: sizes of named dimensions, such as ``{"T": 64}``.
        providers: the execution providers for ``after``, by default the CPU. ``before`` always runs on the CPU.
        configure: a function that is called with the SessionOptions of each session before it is created, to register custom
            operators or to set threads.
        level: ``full``; or ``quick`` to try few and small cases and to check each loop of a large model separately.
        time_limit: the seconds after which nothing more is tried and the current run stops. Default QUICK_SECONDS or FULL_SECONDS.
        memory_limit: the most bytes of generated inputs, and of any value whose size is known beforehand. Default QUICK_BYTES or
            FULL_BYTES.

    Raises:
        ModelFileError: a model or an .npz cannot be read.
        OptionError: an option is invalid, or ``inputs``, ``shapes`` or ``providers`` do not fit the model or this onnxruntime.
    """
    _check_options(seed, rtol, atol, providers, level, time_limit, memory_limit)
    usual = (QUICK_SECONDS, QUICK_BYTES) if level == "quick" else (FULL_SECONDS, FULL_BYTES)
    seconds = usual[0] if time_limit is None else min(time_limit, _LONGEST)
    budget = Budget(seconds, usual[1] if memory_limit is None else memory_limit)
    with ExitStack() as stack:
        old, new = without_plans(open_source(before, stack), stack), open_source(after, stack)
        check_providers(providers or _CPU)
        chosen = ChosenInputs.of(old.proto, inputs, shapes, dims)
        specs, sizes = chosen.specs, chosen.sizes
        problems = static_problems(old.proto, new.proto)
        if problems:
            alike = not interface_differences(old.proto, new.proto)
            names = [spec.name for spec in output_specs(old.proto.graph)]
            return result_without_runs(names, problems, inconclusive=alike and bool(crash_risks(old.proto)))
        settings = CompareSettings(budget, stack, seed, rtol, atol, providers or _CPU, configure, level)
        if level == "quick" and inputs is None and is_large(old.proto) and has_loops_of_its_own(old.proto):
            outcome = compare_loops(old, new, specs, sizes, settings)
        else:
            outcome = compare_models(old, new, specs, sizes, chosen.sets, settings, chosen.recorded)
        only_sizes = [] if outcome.inconclusive else _note_on_sizes(sizes, dims or {}, input_specs(new.proto.graph))
        outcome = replace(outcome, level=level, limits_hit=tuple(budget.hits), notes=[*outcome.notes, *only_sizes])
        _log.info("%s", outcome.summary().splitlines()[0])
        return outcome


def _note_on_sizes(sizes: Mapping[str, int], named: Mapping[str, int], specs: Sequence[SessionSpec]) -> list[str]:
    """Return a note that only ``sizes``, which the caller chose, were compared.

    ``named`` has the sizes from the option ``dims``; the others are from ``shapes``. Leave out sizes that are fixed in
    ``specs``, the inputs of the rewritten model. Return an empty list if no size is left.
    """
    free = {dim or f"{spec.name}[{axis}]" for spec in specs for axis, dim in enumerate(spec.dims or ()) if not isinstance(dim, int)}
    chosen = [f"{name}={size}" for name, size in sizes.items() if name in free]
    option = "dims" if named.keys() & sizes.keys() else "shapes"
    return [f"compared only at {', '.join(chosen)} ({option}={{...}})"] if chosen else []


def _check_options(seed: Any, rtol: Any, atol: Any, providers: Any, level: Any, time_limit: Any, memory_limit: Any) -> None:
    """Raise OptionError if an option has an invalid type or value."""
    if not isinstance(seed, numbers.Integral) or seed < 0:
        raise OptionError(f"seed must be a whole number of 0 or more, not {shown(seed)}.")
    tolerance, above_zero = "a number of 0 or more", sys.float_info.min
    _check_number("rtol", rtol, numbers.Real, 0, tolerance)
    _check_number("atol", atol, numbers.Real, 0, tolerance)
    if isinstance(providers, str):
        raise OptionError("providers must be a list of names, not a string.")
    if not isinstance(level, str) or level not in ("full", "quick"):
        raise OptionError(f"level must be 'full' or 'quick', not {shown(level)}.")
    _check_number("time_limit", time_limit, numbers.Real, above_zero, "a number of seconds above 0")
    _check_number("memory_limit", memory_limit, numbers.Integral, above_zero, "a whole number of bytes above 0")


def _check_number(name: str, value: Any, kind: type, least: float, what: str) -> None:
    if value is None:
        return
    try:
        if isinstance(value, kind) and not isinstance(value, bool) and least <= float(value) < math.inf:  # type: ignore[arg-type]
            return
    except OverflowError:
        pass
    raise OptionError(f"{name} must be {what}, not {shown(value)}.")
