"""Store the weights of a result in fewer bits, and keep those as float32 whose error is too large.

First all weights are stored in the requested format. If the error of the outputs exceeds the limit, the error of each weight alone
is measured. Then the weights with the largest errors become float32 again, as few as possible.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from ortscan.modelio import LoadedModel, reopened
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.weight_errors import ErrorMeter, WeightError
from ortscan.soundness.new_fault import new_fault
from ortscan.verification.inputs.given_inputs import Given
from rewrites.base.errors import InvariantBroken, OptionError, VerificationFailed
from rewrites.base.plain_text import quoted
from rewrites.base.weights_report import WeightReport, WeightsReport
from rewrites.driver.engine import count_operators
from rewrites.graph.names import Names
from rewrites.weights.finding import find_weights
from rewrites.weights.float_reasons import why_float
from rewrites.weights.storing import StoredWeight

__all__ = ["with_smaller_weights"]

_BFLOAT16_OPSET = 13


def with_smaller_weights(
    rewriting: Rewriting, outcome: Rewritten, stored_as: str, max_error: float, inputs: Given | None = None, seed: int = 0
) -> Rewritten:
    """Return ``outcome`` with weights in the format ``stored_as``.

    Weights whose error is too large stay float32. IR version 3 becomes version 4, in which weights need not be inputs.

    Args:
        rewriting: the rewriting that produced ``outcome``. The outputs are compared with those of its original.
        outcome: the result. It must not be used any more. Its report gets the sizes and the errors of the weights.
        stored_as: the name of the format.
        max_error: the largest error of an output, relative to its largest number.
        inputs: the inputs on which the error is measured; None for generated inputs.
        seed: the seed of generated inputs.

    Raises:
        OptionError: the model's opset does not have the format.
        UnsupportedModel: the original runs on none of the inputs.
        VerificationFailed: even the weight with the smallest error makes a larger error than ``max_error``, or no weight has only
            numbers that the format can store.
    """
    loaded, report = reopened(outcome.loaded), outcome.report
    graph, opset = loaded.model.graph, loaded.model.opset_imports.get("", 1)
    if stored_as == "bfloat16" and opset < _BFLOAT16_OPSET:
        raise OptionError(f"weights: bfloat16 needs opset {_BFLOAT16_OPSET}, but the model has {opset}; convert it (--opset 18).")
    names = Names(loaded.model)
    candidates = find_weights(graph)
    left_out = why_float(graph, {weight.value for weight in candidates})
    if not candidates:
        report.weights = WeightsReport(stored_as, max_error, 0.0, math.inf, 0, left_out=left_out)
        return outcome
    loaded = replace(loaded, listed=None)
    weights = [StoredWeight(weight, stored_as, graph, names) for weight in candidates]
    if all(weight.lacking for weight in weights):
        raise VerificationFailed(f"{quoted(candidates[0].value.name)} {weights[0].lacking}.")
    with ExitStack() as stack:
        meter = ErrorMeter(rewriting.model, rewriting.sizes or {}, inputs, seed, stack)
        kept, singly, error = _choose(weights, loaded, meter, max_error)
    if len(kept) == len(weights):
        raise VerificationFailed(
            f"Each weight alone makes a larger error than {100 * max_error:g} % if it is stored as {stored_as}; "
            f"the smallest error is {100 * min(singly.values()):.2g} %. To allow such an error, raise max_error."
        )
    for weight in weights:
        weight.use(stored=weight not in kept)
        weight.remove_unread()
    if (fault := new_fault(rewriting.model, loaded)) is not None:
        raise InvariantBroken(f"The model with smaller weights is not sound: {fault}")
    entries = [_entry(weight, stored_as, weight in kept, singly.get(weight)) for weight in weights]
    report.weights = WeightsReport(
        stored_as, max_error, error.relative, error.decibels, len(meter.feeds), entries, left_out, error.of_elements
    )
    report.operators_after = count_operators(graph)
    return outcome._replace(loaded=loaded, is_touched=True)


def _choose(
    weights: Sequence[StoredWeight], loaded: LoadedModel, meter: ErrorMeter, max_error: float
) -> tuple[set[StoredWeight], dict[StoredWeight, float], WeightError]:
    """Choose the weights to keep as float32.

    Return them, the error of each weight alone, and the error of the result. The errors of single weights are measured only if the
    error of all weights is too large.
    """

    def error_with(chosen: set[StoredWeight]) -> WeightError:
        for weight in weights:
            weight.use(stored=weight in chosen)
        return meter.error_of(loaded)

    every = {weight for weight in weights if not weight.lacking}
    if (error := error_with(every)).relative <= max_error:
        return set(weights) - every, {}, error
    singly = {weight: math.inf if weight.lacking else error_with({weight}).relative for weight in weights}
    worst_first = sorted(weights, key=lambda weight: -singly[weight])
    fewest, most = 1, len(weights)
    error = WeightError(0.0, math.inf)
    while fewest < most:
        middle = (fewest + most) // 2
        tried = error_with(set(worst_first[middle:]))
        if tried.relative <= max_error:
            most, error = middle, tried
        else:
            fewest = middle + 1
    return set(worst_first[:most]), singly, error


def _entry(weight: StoredWeight, stored_as: str, is_kept: bool, error: float | None) -> WeightReport:
    operators = [node.op_type for node, _ in weight.weight.reads]
    size = weight.float_bytes if is_kept else weight.stored_bytes
    name, form = weight.weight.value.name or "", "float32" if is_kept else stored_as
    return WeightReport(name, operators, form, weight.float_bytes, size, None if weight.lacking else error, weight.lacking)
