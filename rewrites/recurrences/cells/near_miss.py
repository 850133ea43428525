"""Why a loop whose states meet weights is no recurrent cell, said of the first thing in it that no cell has.

What quantizes the state is told apart from other operators. Measured: a DynamicQuantizeLSTM quantizes its input once, by the range
of all steps, and the state by the range of the rows that one thread has; beside a loop that quantizes each step, results up to 1
differ by 0.01 to more than 1. A constant scale, as in static quantization, it has not.
"""

import onnx_ir as ir

from rewrites.base.not_applicable import NOTHING_HERE, NotApplicable
from rewrites.loops import ScanView
from rewrites.loops.checks import label
from rewrites.recurrences.cells.interpretation import Interpretation

__all__ = ["why_no_cell"]

_QUANTIZERS = frozenset({"DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QuantizeLinear"})


def why_no_cell(loop: ScanView, opset: int) -> NotApplicable:
    """Say what of ``loop``, in which no cell was found, is read as part of none; nothing where that is no single thing."""
    quantizer = _quantizer(loop)
    if quantizer is not None:
        how = "by the range of the step" if quantizer.op_type.startswith("Dynamic") else "by a scale of its own"
        detail = f"{quantizer.op_type} {label(quantizer)} quantizes the state {how}, as no DynamicQuantizeLSTM does"
        return NotApplicable("CELL-QUANTIZED", detail)
    reading = Interpretation.of_body(loop, opset)
    states = [state for state in loop.states if state.inner.dtype is not None and state.inner.dtype.is_floating_point()]
    unread = next((state for state in states if reading.meaning(state.inner) is None), None)
    if unread is not None:
        return NotApplicable("CELL-FEATURES", f"the number of features of the state '{unread.inner.name}' is not known")
    moving = {state.inner for state in states}
    for node in loop.body:
        if moving.isdisjoint(node.inputs):
            continue
        moving.update(node.outputs)
        given = all(value is None or reading.meaning(value) is not None for value in node.inputs)
        if given and all(reading.meaning(value) is None for value in node.outputs):
            return NotApplicable(
                "CELL-OPERATOR", f"{node.op_type} {label(node)} is applied to the state, as in no RNN, GRU or LSTM"
            )
    if states and all(reading.meaning(state.next) is not None for state in states):
        names = ", ".join(f"'{state.inner.name}'" for state in states)
        return NotApplicable("CELL-EQUATIONS", f"the equations of the state {names} are those of no RNN, GRU or LSTM")
    return NOTHING_HERE


def _quantizer(loop: ScanView) -> ir.Node | None:
    """Return what quantizes a state as it was, if anything does."""
    states = [state.inner for state in loop.states]
    return next((node for node in loop.body if node.op_type in _QUANTIZERS and node.inputs[0] in states), None)
