"""Whether what is wrong with a result is that the model declares an output with another rank than it has, and declaring that.

    hT = Loop (n, , h0)    h0 [4], hT declared as [4, 1]    ->    hT = Scan (h0, xs)
    y = Reshape (x, s)     s computed, [3], y declared as [1, N]    ->    y = Reshape (x, [12, 1, 8210])

onnx does not infer what a Loop's state is in the end, or what is made of a value whose rank it has lost, so nobody objected; of
what is written instead it does, and refuses what computes the same. onnxruntime warns of such an output and gives it as it is.
"""

from collections.abc import Mapping

import onnx

from ortscan.modelio.loaded import LoadedModel, to_proto
from ortscan.modelio.loading import AnyModel, load
from ortscan.ort.onnx_says import said_by_onnx, without_weights
from rewrites.analysis.shapes.inference import infer_model
from rewrites.base.no_defect import DeclaredOtherwise
from rewrites.graph.values import rank_of

__all__ = ["Outputs", "declare_ranks", "declared_as_in", "declared_otherwise", "other_ranks"]

Outputs = Mapping[str, onnx.ValueInfoProto]


def declared_otherwise(before: AnyModel, after: onnx.ModelProto) -> DeclaredOtherwise | None:
    """Return what the model declares of an output that is not so, where onnx has nothing else against the result."""
    if _inferred(after) is None:
        return None
    model = load(before).model
    declared = {value.name: rank_of(value) for value in model.graph.outputs}
    infer_model(model)
    for value in model.graph.outputs:
        was, rank = declared[value.name], rank_of(value)
        if None not in (was, rank) and was != rank:
            return _said(str(value.name), was, rank)
    return None


def other_ranks(unchanged: LoadedModel) -> Outputs:
    """Return the outputs that a model, which no rule has changed, declares with another rank than onnx infers, as they are then."""
    proto = without_weights(to_proto(unchanged))
    inferred, names = _inferred(proto) or {}, _names_of_inputs(proto)
    found = {info.name: inferred[info.name] for info in proto.graph.output if _contradicts(info, inferred.get(info.name))}
    for info in found.values():
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param not in names:
                dim.ClearField("dim_param")
    return found


def declare_ranks(after: LoadedModel, outputs: Outputs) -> list[str]:
    """Declare these outputs as they are, and say of each how it was declared."""
    was = {info.name: _rank(info) for info in after.interface.outputs}
    after.interface = after.interface.with_outputs(outputs)
    after.redeclared = {**outputs}
    after.judged = None
    return [f"{_said(name, was[name], _rank(info))}: the result declares that" for name, info in outputs.items()]


def declared_as_in(before: AnyModel, after: LoadedModel) -> AnyModel:
    """Return the original, its outputs declared as ``after`` does where it had to: else the two could not be called alike."""
    if not after.redeclared:
        return before
    loaded = load(before)
    loaded.interface = loaded.interface.with_outputs(after.redeclared)
    return loaded


def _inferred(model: onnx.ModelProto) -> Outputs | None:
    """Return the outputs as onnx infers them where nothing is declared of them; None where it refuses the model then."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for info in bare.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    found: list[onnx.ModelProto] = []
    said = said_by_onnx(
        lambda: found.append(onnx.shape_inference.infer_shapes(bare, check_type=True, strict_mode=True, data_prop=True))
    )
    return None if said is not None else {info.name: info for info in found[0].graph.output}


def _contradicts(declared: onnx.ValueInfoProto, inferred: onnx.ValueInfoProto | None) -> bool:
    return inferred is not None and None not in (_rank(declared), _rank(inferred)) and _rank(declared) != _rank(inferred)


def _rank(info: onnx.ValueInfoProto) -> int | None:
    return len(info.type.tensor_type.shape.dim) if info.type.tensor_type.HasField("shape") else None


def _said(name: str, declared: int | None, rank: int | None) -> DeclaredOtherwise:
    return DeclaredOtherwise(f"the model declares rank {declared} for the output '{name}', which has rank {rank}")


def _names_of_inputs(model: onnx.ModelProto) -> set[str]:
    return {dim.dim_param for info in model.graph.input for dim in info.type.tensor_type.shape.dim}
