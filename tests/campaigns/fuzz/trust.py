"""Which of onnxruntime's own answers are to be trusted: it runs some models that are none, and some numbers are noise.

Works around ORT-LOOP-STACKED-STRINGS, ORT-LOOP-NO-STEPS-SIZES, ORT-RESHAPE-FUSED and ONNX-IF-10-SIZES.
"""

from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime as ort
from onnx import ModelProto

import ortscan
from rewrites.analysis.shapes.inference import infer_model
from rewrites.base import since
from tests.campaigns.fuzz.case import Case, Feeds
from tests.campaigns.fuzz.comparing import coarseness, difference
from tests.campaigns.fuzz.edits import graphs_of
from tests.campaigns.fuzz.unaliased import unaliased
from tests.campaigns.fuzz.unwritten import unwritten_outputs
from tests.support.loop_oracle import run_model
from tests.support.runtime import run_session

__all__ = ["is_shaky", "runs_as_written", "session_of"]


def session_of(data: bytes, registered: bool = False, plain: bool = False) -> ort.InferenceSession:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if plain:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if registered:
        ortscan.register(options)
    return ort.InferenceSession(data, options)


def runs_as_written(case: Case, feeds: Feeds) -> bool:
    """Whether the original runs without onnxruntime's optimiser too, which takes some Reshapes of too few elements for right."""
    try:
        run_session(session_of((unaliased(case.model) or case.model).SerializeToString(), plain=True), feeds)
    except Exception:
        return False
    return True


def is_shaky(case: Case, oracle: ort.InferenceSession, feeds: Feeds, before: list[Any], actual: list[Any]) -> bool:
    """Whether the numbers are not the model's: they move as far for an imperceptible change of what it is fed, or without
    onnxruntime's optimiser, or nothing wrote them, or the plain loop over time has those of the result (as onnxruntime garbles
    stacked strings), or the original alone lost strings, which onnxruntime moves out of states that a Loop also stacks.
    """
    model, coarse = unaliased(case.model) or case.model, coarseness(case.model)
    data = model.SerializeToString()
    apart = [k for k, (a, b) in enumerate(zip(before, actual, strict=True)) if difference([a], [b], coarse) is not None]
    noise = unwritten_outputs(data, oracle, feeds, before, coarse)
    if (noise and noise.issuperset(apart)) or _guesses_sizes(model, feeds, actual, coarse):
        return True
    if any(np.shape(before[k]) != np.shape(actual[k]) for k in apart):
        return (
            all(_reduces_nothing(np.asarray(before[k]), np.asarray(actual[k])) for k in apart)
            or _is_as_written(data, feeds, before, actual, coarse, _has_old_if(model) or _is_quantized(model))
            or _moves_with_feeds(oracle, feeds, before, coarse)
        )
    if all(_has_lost_strings(before[k], actual[k]) for k in apart):
        return True
    plain = run_session(session_of(data, plain=True), feeds)
    if difference(plain, actual, coarse) is None:
        return True
    if all(difference([before[k]], [plain[k]], coarse) is not None for k in apart):  # the original contradicts itself
        return True
    try:
        by_hand = run_model(model, feeds)
        if difference([by_hand[k] for k in apart], [actual[k] for k in apart], coarse) is None:
            return True
    except Exception:
        pass
    return _moves_with_feeds(oracle, feeds, before, coarse)


def _moves_with_feeds(oracle: ort.InferenceSession, feeds: Feeds, before: list[Any], coarse: float) -> bool:
    """Return True if the original's outputs, or its number of steps, differ for feeds that are rounded otherwise.

    It is tried 12 times, because a condition on a sum of nothing but noise changes only now and then.
    """
    rng = np.random.default_rng(0)
    for spacings in (2.5, 25) * 6:
        nudged = {name: _nudged(array, spacings, rng) if array.dtype.kind == "f" else array for name, array in feeds.items()}
        if difference(before, run_session(oracle, nudged), coarse) is not None:
            return True
    return False


def _has_old_if(model: ModelProto) -> bool:
    old = all(entry.version < since.IF_SIZES_APART for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    return old and any(node.op_type == "If" for graph in graphs_of(model) for node in graph.node)


def _is_quantized(model: ModelProto) -> bool:
    return any(node.op_type == "DequantizeLinear" for graph in graphs_of(model) for node in graph.node)


def _has_lost_strings(before: np.ndarray, actual: np.ndarray) -> bool:
    """Whether two arrays of strings differ only where the first has empty ones."""
    return (
        np.asarray(before).dtype.kind == "O" and not np.asarray(before)[np.asarray(before) != np.asarray(actual)].astype(bool).any()
    )


def _reduces_nothing(before: np.ndarray, actual: np.ndarray) -> bool:
    """Return True if ``before`` is empty only because onnxruntime takes 0 for unknown sizes of a Loop without steps.

    A reduction of the stacked results then has the same element everywhere in ``actual``: 0, 1, NaN or an infinity.
    """
    if before.size or not actual.size or before.ndim != actual.ndim or before.dtype != actual.dtype:
        return False
    is_more = all(old in (0, new) for old, new in zip(before.shape, actual.shape, strict=True))
    return is_more and np.array_equal(actual, np.full_like(actual, actual.flat[0]), equal_nan=actual.dtype.kind == "f")


def _guesses_sizes(model: ModelProto, feeds: Feeds, actual: list[Any], coarse: float) -> bool:
    """Whether onnxruntime gives what the result does once it is told the sizes of what Loops stack: without a step it takes 0
    for those that it does not know, and so does all that is computed from them.
    """
    told = ir.from_proto(model)
    infer_model(told)
    try:
        return difference(run_session(session_of(ir.to_proto(told).SerializeToString()), feeds), actual, coarse) is None
    except Exception:
        return False


def _is_as_written(data: bytes, feeds: Feeds, before: list[Any], actual: list[Any], coarse: float, may_change_sizes: bool) -> bool:
    """Return True if onnxruntime gives the result's outputs without its optimiser, and only empty outputs differ in size.

    What a body declares against its own operators counts until the optimiser has changed something in it. Outputs of any size may
    differ with ``may_change_sizes``: the optimiser folds the size that one branch of an If gives, as it does before opset 11, or it
    rounds quantized products otherwise, and a loop then stops at another step.
    """
    pairs = [pair for pair in zip(before, actual, strict=True) if np.shape(pair[0]) != np.shape(pair[1])]
    if any(np.size(one) or np.size(other) for one, other in pairs) and not may_change_sizes:
        return False
    return difference(run_session(session_of(data, plain=True), feeds), actual, coarse) is None


def _nudged(array: np.ndarray, steps: float, rng: np.random.Generator) -> np.ndarray:
    apart = steps * float(np.finfo(array.dtype).eps)
    return np.asarray(array * (1 + apart * rng.choice([-1, 1], array.shape))).astype(array.dtype)
