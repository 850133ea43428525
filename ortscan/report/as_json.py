"""A Report for programs: one JSON object."""

import json
import math
from typing import Any

from rewrites.base.report import Report

__all__ = ["dump", "report_dict"]


def report_dict(report: Report) -> dict[str, Any]:
    """Return ``report`` as plain data; the loops first, then what was counted."""
    counts = {"operators_before": dict(report.operators_before), "operators_after": dict(report.operators_after)}
    return {**report.to_dict(), **counts, "changed": report.changed}


def dump(document: dict[str, Any]) -> str:
    """Write ``document`` as standard JSON; the numbers JSON lacks become the strings "inf", "-inf" and "nan"."""
    return json.dumps(_standard(document), indent=2, allow_nan=False, default=str)


def _standard(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _standard(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_standard(item) for item in value]
    if hasattr(value, "tolist"):
        return _standard(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
