"""Correct a rewritten model whose only fault is that onnx infers other shapes than it declares."""

from ortscan.modelio import AnyModel, LoadedModel
from ortscan.soundness.hidden_bounds import hide_bounds_of_slices
from ortscan.soundness.new_fault import Original, new_fault
from ortscan.soundness.output_shapes import declare_inferred_shapes

__all__ = ["fault_after_corrections"]


def fault_after_corrections(before: AnyModel | Original, after: LoadedModel) -> str | None:
    """Return a fault of ``after`` that ``before`` does not have and that no correction removes, or None.

    If a correction removes the fault, ``after`` is changed. See ``new_fault`` for the arguments and errors.
    """
    fault = new_fault(before, after)
    if fault is None:
        return None
    is_corrected = hide_bounds_of_slices(after) or declare_inferred_shapes(after)
    return None if is_corrected and new_fault(before, after) is None else fault
