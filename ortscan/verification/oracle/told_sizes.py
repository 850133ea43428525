"""An oracle that is told the sizes of what its Loops stack.

Without a step onnxruntime takes 0 for each size that it does not know, and so does all that is computed from the stack: the mean
over the steps has no element then, where it has one for each feature that a step would have given.

Works round ORT-LOOP-NO-STEPS-SIZES.
"""

import onnx
import onnx_ir as ir

from ortscan.modelio.slots import own_ir
from rewrites.analysis.shapes.inference import infer_model

__all__ = ["with_told_sizes"]


def with_told_sizes(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with all sizes declared that can be inferred, those of bodies' results above all."""
    model = own_ir(proto)
    infer_model(model)
    return ir.to_proto(model)
