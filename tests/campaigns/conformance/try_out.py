"""Runs one wrapped test: onnxruntime on the original, ``ortscan.optimize``, onnxruntime on what that gives, and compares."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx

from tests.campaigns.conformance.wrapping import WRAPPER, Wrapped

__all__ = ["Outcome", "Status", "try_out"]

Status = Literal["not run", "gone", "left", "wrong", "invalid", "crash"]
"""``not run``: onnxruntime does not run the original. ``gone``: nothing but an unrelated state is left in the loop."""

_TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-5, "float64": 1e-11}
_COUNTER_BODY = {"Add", "Identity"}


@dataclass(frozen=True)
class Outcome:
    """What became of one wrapped test; ``code`` is the reason where the loop is left, ``detail`` says more."""

    name: str
    op: str
    status: Status
    code: str = ""
    detail: str = ""


def try_out(wrapped: Wrapped, opset: str, ran: Callable[[], None]) -> Outcome:
    """Say what becomes of ``wrapped``; ``ran`` is called once the original has run on onnxruntime."""
    from tests.support.runtime import ort_run

    def outcome(status: Status, code: str = "", detail: str = "") -> Outcome:
        return Outcome(wrapped.name, wrapped.test.op, status, code, " ".join(detail.split())[:400])

    try:
        wanted = ort_run(wrapped.model, wrapped.feeds)
    except Exception as error:  # onnxruntime raises its own classes, RuntimeError and whatever numpy raises on the way
        return outcome("not run", detail=str(error))
    ran()
    from ortscan.api import rewritten
    from ortscan.modelio import to_caller_type

    try:
        loaded, report = rewritten(wrapped.model, opset=opset)
        result = to_caller_type(loaded)
        assert isinstance(result, onnx.ModelProto)
    except Exception as error:  # every error here is a defect, whatever its class
        return outcome("crash", detail=f"{type(error).__name__}: {error}")
    fault = _fault(wrapped.model, result)
    if fault:
        return outcome("invalid", detail=fault)
    try:
        got = ort_run(result, wrapped.feeds)
    except Exception as error:
        return outcome("invalid", detail=f"onnxruntime: {error}")
    difference = _difference(wanted, got)
    if difference:
        return outcome("wrong", detail=difference)
    entry = next(loop for loop in report.loops if loop.where == f"main/Scan '{WRAPPER}'")
    if entry.fate == "removed" or (wrapped.form == "beside" and _only_the_counter(result)):
        return outcome("gone")
    reason = entry.reasons[0] if entry.reasons else None
    return outcome("left", reason.code if reason else "NO-REASON", reason.detail if reason else "")


def _fault(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    for one, other in ((before.graph.input, after.graph.input), (before.graph.output, after.graph.output)):
        if [value.SerializeToString() for value in one] != [value.SerializeToString() for value in other]:
            return "the interface changed"
    fault = _checker_fault(after)
    return fault if fault and not _checker_fault(before) else ""


def _checker_fault(model: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return f"onnx.checker: {error}"
    return ""


def _only_the_counter(model: onnx.ModelProto) -> bool:
    loops = [node for node in model.graph.node if node.op_type in ("Scan", "Loop") and node.name.startswith(WRAPPER)]
    bodies = [attribute.g for node in loops for attribute in node.attribute if attribute.name == "body"]
    inside = [node.op_type for body in bodies for node in body.node]
    return len(loops) <= 1 and set(inside) <= _COUNTER_BODY and inside.count("Add") <= 1


def _difference(wanted: list[Any], got: list[Any]) -> str:
    for place, (one, other) in enumerate(zip(wanted, got, strict=True)):
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"output {place}: {one.dtype}{list(one.shape)} became {other.dtype}{list(other.shape)}"
        tolerance = _TOLERANCE.get(one.dtype.name)
        if tolerance is None:
            same = bool(np.array_equal(one, other)) if one.dtype.kind in "biuOU" else one.tobytes() == other.tobytes()
        else:
            left, right = one.astype(np.float64), other.astype(np.float64)
            scale = float(np.max(np.abs(left[np.isfinite(left)]), initial=1.0))
            same = bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
        if not same:
            return f"output {place}: {one.reshape(-1)[:6]} became {other.reshape(-1)[:6]}"
    return ""
