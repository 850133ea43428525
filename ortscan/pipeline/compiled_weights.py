"""Compile the loops and recurrent nodes of a result whose weights are stored in fewer bits.

The rules for ortscan's library look at the weights, so they run after the weights were stored.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import onnx_ir as ir

from ortscan.pipeline.compare_with_original import compare
from ortscan.pipeline.on_difference import verified
from ortscan.pipeline.rewriting import Rewriting, Rewritten
from ortscan.pipeline.self_check import self_checked
from ortscan.running.budget import Level
from rewrites.base.plain_text import counted, listed

__all__ = ["compiled"]

_SMALLER = (ir.DataType.INT8, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_SAME = ("target", "runtime", "costs", "memory_budget", "skip", "shapes", "dims")
"""The options of the first rewriting that the second has too. The others have had their effect."""


def compiled(outcome: Rewritten, options: Mapping[str, Any], level: Level | None) -> Rewritten:
    """Return ``outcome`` with calls of ortscan's library. The report covers both rewritings.

    Args:
        outcome: a result with smaller weights, written with ``native=False``. It must not be used any more.
        options: the options of ``optimize``.
        level: how thoroughly the compiled model is compared with ``outcome``; None for no comparison.
    """
    rewriting = Rewriting(
        outcome.loaded.model, native=True, opset="keep", **{name: options[name] for name in _SAME if name in options}
    )
    result = self_checked(rewriting)
    if level is not None:
        result = verified(rewriting, result, lambda it: compare(rewriting.model, it, level, 0.0, rewriting.sizes))
    if not result.is_touched:
        return outcome
    first, second = outcome.report, result.report
    first.loops = [loop for loop in first.loops if loop.fate == "removed"] + second.loops
    first.patches, first.changes = first.patches + second.patches, first.changes + second.changes
    first.cells, first.operators_after = second.cells, second.operators_after
    if lost := _smaller_constants(outcome.loaded.model) - _smaller_constants(result.loaded.model):
        weights = counted(len(lost), "smaller weight")
        names = listed(sorted(lost))
        first.messages.append(f"{weights} became float32 again in compiled loops: {names}; without --native the file is smaller")
    loaded = replace(result.loaded, kind=outcome.loaded.kind, source=outcome.loaded.source, unchanged=None)
    return outcome._replace(loaded=loaded)


def _smaller_constants(model: ir.Model) -> set[str]:
    return {name for name, value in model.graph.initializers.items() if value.dtype in _SMALLER}
