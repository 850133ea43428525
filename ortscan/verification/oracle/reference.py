"""Giving a model that onnxruntime has no kernel for a meaning to compare with: that of onnx's own reference operators.

    y = Max (a, b) of int16    ->    y = ortscan.python.Call <Max> (a, b), which the reference computes

Only for the comparison, and only where onnxruntime loads the model for want of nothing else.
"""

from contextlib import ExitStack

from ortscan.modelio import load, restore_interface
from ortscan.modelio.source import Source, model_of, open_source
from ortscan.ort.sessions import has_kernel
from rewrites.driver.prepare import name_free_dims, prepare
from rewrites.driver.tidying import tidy
from rewrites.graph.context import Context, Options
from rewrites.python_ops.put_calls import place_python_ops

__all__ = ["reference_oracle"]

_NO_KERNEL = "Could not find an implementation for"


def reference_oracle(before: Source, error: str, stack: ExitStack) -> tuple[Source, list[str]] | None:
    """Return ``before``, which onnxruntime refuses with ``error``, with calls of Python where it has no kernel, and words on that.

    None where that is not why it is refused, or a call cannot stand for every such node.
    """
    if _NO_KERNEL not in error:
        return None
    loaded = load(model_of(before))
    name_free_dims(loaded.model)
    ctx = Context.of(loaded.model, Options(), lambda _: None, has_kernel)
    prepare(ctx)
    gaps = place_python_ops(ctx, wider=False)
    if not gaps or any(gap.fate != "python" for gap in gaps):
        return None
    tidy(ctx)
    restore_interface(loaded)
    notes = [f"onnxruntime has no kernel for {gap.where} of the original: onnx's reference ran" for gap in gaps]
    return open_source(loaded, stack), notes
