"""Whether what is wrong with a result is that the model declares an output with another rank than it has.

    hT = Loop (n, , h0)    h0 [4], hT declared as [4, 1]    ->    hT = Scan (h0, xs)

onnx does not infer what a Loop's state is in the end, so nobody objected; of a Scan it does, and refuses what computes the same.
"""

import onnx

from ortscan.modelio.loading import AnyModel, load
from ortscan.ort.onnx_says import said_by_onnx
from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.no_defect import DeclaredOtherwise
from rewrites.graph.values import rank_of

__all__ = ["declared_otherwise"]


def declared_otherwise(before: AnyModel, after: onnx.ModelProto) -> DeclaredOtherwise | None:
    """Return what the model declares of an output that is not so, where onnx has nothing else against the result."""
    bare = onnx.ModelProto()
    bare.CopyFrom(after)
    for info in bare.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    if said_by_onnx(lambda: onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True)) is not None:
        return None
    model = load(before).model
    declared = {value.name: rank_of(value) for value in model.graph.outputs}
    infer_model(model)
    for value in model.graph.outputs:
        was, rank = declared[value.name], rank_of(value)
        if None not in (was, rank) and was != rank:
            return DeclaredOtherwise(f"the model declares rank {was} for the output '{value.name}', which has rank {rank}")
    return None
