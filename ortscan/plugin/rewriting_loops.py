"""A loop that has no plan, rewritten as a whole model is, and compared. It takes seconds: it is for plans that are stored."""

import time

import onnx

from ortscan.errors import OrtscanError
from ortscan.modelio.loaded import to_proto
from ortscan.pipeline.compare_with_original import compare
from ortscan.pipeline.rewriting import Rewriting
from ortscan.pipeline.self_check import self_checked
from ortscan.plugin.answers import Answer
from ortscan.plugin.planning import has_loop

__all__ = ["rewritten"]


def rewritten(model: bytes) -> bytes | None:
    """Return the answer with a model without loops that was found to compute the same, or None."""
    try:
        started = time.monotonic()
        rewriting = Rewriting(onnx.load_from_string(model), native=True)
        outcome = self_checked(rewriting)
        made = to_proto(outcome.loaded)
        if has_loop(made.graph):
            return None
        verification = compare(rewriting.model, outcome.loaded, "quick", time.monotonic() - started)
        return (
            Answer(made.SerializeToString(), is_plan=False).encoded() if verification.ok and not verification.inconclusive else None
        )
    except OrtscanError:
        return None
