"""An Attention whose scores are read after the mask is not taken across opset 25.

    Attention <is_causal = 1, qk_matmul_output_mode = 2> (q, k, v)  ->  refused if its fourth output is read

onnxruntime has a kernel up to opset 24, in which the scores of masked positions are finite. From opset 25 on it expands the
function of the operator's text, in which they are -inf.

Works round ORT-ATTENTION-SCORES.
"""

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["refuse_masked_scores"]

_AFTER_MASK = 2
_SCORES = 3


def refuse_masked_scores(step: Step) -> None:
    """24 -> 25 and 25 -> 24."""
    outputs = step.node.outputs
    if len(outputs) > _SCORES and outputs[_SCORES].name and step.int_("qk_matmul_output_mode", 0) == _AFTER_MASK:
        raise Unconvertible("onnxruntime gives other scores for masked positions from opset 25 on than before")
