"""Writes into a model's metadata what it needs beside onnxruntime."""

import json

from ortscan.base import __version__
from ortscan.modelio import LoadedModel
from rewrites.base.report import KernelGap, Report
from rewrites.python_ops.names import DOMAIN, METADATA, OPERATOR, VERSION

__all__ = ["note_python_ops"]


_MOST_SAID = 20


def note_python_ops(loaded: LoadedModel, report: Report) -> list[str]:
    """Say in the metadata that the model calls Python, where it does, and return sentences on each call for the report."""

    calls = sum(gap.fate == "python" for gap in report.kernel_gaps)
    if calls:
        facts = {"domain": DOMAIN, "operator": OPERATOR, "version": VERSION, "calls": calls, "ortscan": __version__}
        loaded.interface = loaded.interface.with_metadata(METADATA, json.dumps(facts, sort_keys=True))
    said = [_sentence(gap) for gap in report.kernel_gaps]
    return said if len(said) <= _MOST_SAID else [*said[:_MOST_SAID], f"and {len(said) - _MOST_SAID} more nodes without a kernel"]


def _sentence(gap: KernelGap) -> str:
    start = f"{gap.where} has no kernel in onnxruntime"
    if gap.fate == "kept":
        return f"{start}, and cannot be called in Python: {gap.code}: {gap.detail}"
    return f"{start}; {gap.detail}" if gap.fate == "wider" else f"{start} and is called in Python: {gap.detail}"
