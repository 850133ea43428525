"""Correct wrong declarations of the shapes of outputs.

The wrong shape is replaced by the shape that onnx infers, which is also the shape that onnxruntime returns:

    hT = Loop (n, , h0)    h0 [4], hT declared as [4, 1]    ->    hT = Scan (h0, xs), declared as [4]
    ys = Loop (128, , h0)    ys declared as [6, 6]    ->    ys = Scan (h0, xs), declared as [128, 6]

Without the correction, onnx would reject the rewritten model, although it accepts the original. In the original, onnx may not
notice the wrong declaration, because it cannot infer the shapes of all results of a Loop, or shapes that depend on values of
unknown rank. In the rewritten model, it infers these shapes. onnxruntime runs both models: it only warns about a wrong declaration.
"""

import onnx

from ortscan.base.messages import warn
from ortscan.modelio.interface import contradicts
from ortscan.modelio.loaded import LoadedModel, redeclare, to_proto
from ortscan.modelio.loading import AnyModel, load
from ortscan.ort.model_errors import without_weights
from ortscan.soundness.strict_inference import infer_strictly
from rewrites.analysis.shapes.onnx_inference import infer_proto
from rewrites.base.plain_text import quoted

__all__ = ["contradictory_outputs", "declare_inferred_shapes", "declared_as_in", "warn_of_redeclarations"]


def declare_inferred_shapes(after: LoadedModel) -> bool:
    """Declare the inferred shape for each output of ``after`` whose declared shape contradicts it.

    Return True if a declaration was changed.
    """
    proto = without_weights(to_proto(after))
    contradictions, names = contradictory_outputs(after, proto), _names_of_inputs(proto)
    for info in contradictions.values():
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param not in names:
                dim.ClearField("dim_param")
    redeclare(after, after.interface.with_outputs(contradictions))
    after.judged = None
    return bool(contradictions)


def contradictory_outputs(loaded: LoadedModel, proto: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """Return the inferred declarations of the outputs whose declared shape contradicts the inferred shape.

    The keys are the names of these outputs. Return an empty dict if onnx rejects the model even without declared shapes of outputs.
    onnx may infer a size from only one branch of an If. Such a size is unknown in the returned declaration.

    Args:
        loaded: the model that ``proto`` was made from.
        proto: the model, possibly without large weights.
    """
    bare = _without_output_shapes(proto)
    result = infer_strictly(loaded, bare)
    inferred = {} if isinstance(result, str) else {info.name: info for info in result.graph.output}
    contradictions = {info.name: inferred[info.name] for info in proto.graph.output if contradicts(info, inferred.get(info.name))}
    careful = infer_proto(bare, data_prop=True) if contradictions else None
    for info in careful.graph.output if careful is not None else ():
        if info.name in contradictions:
            _make_sizes_unknown(contradictions[info.name], info)
    return contradictions


def warn_of_redeclarations(after: LoadedModel) -> list[str]:
    """Issue a warning about each output whose declared shape was corrected, and return the warnings."""
    sentences = [
        f"the model declares shape {_shape(was)} for the output {quoted(name)}, but it has {_shape(now)}; the result declares that"
        for name, (was, now) in after.redeclared.items()
    ]
    for sentence in sentences:
        warn(sentence)
    return sentences


def declared_as_in(before: AnyModel, after: LoadedModel) -> AnyModel:
    """Return the original ``before`` with the declarations of outputs that were corrected in ``after``.

    Both models then have the same interface, so they can be compared.
    """
    if not after.redeclared:
        return before
    loaded = load(before)
    loaded.interface = loaded.interface.with_outputs({name: now for name, (_, now) in after.redeclared.items()})
    return loaded


def _make_sizes_unknown(info: onnx.ValueInfoProto, careful: onnx.ValueInfoProto) -> None:
    """Make each size in ``info`` unknown that is unknown in ``careful``.

    ``info`` and ``careful`` are declarations of the same output.
    """
    known = careful.type.tensor_type.shape.dim
    for axis, dim in enumerate(info.type.tensor_type.shape.dim):
        if axis >= len(known) or not known[axis].HasField("dim_value"):
            dim.ClearField("dim_value")


def _without_output_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for info in bare.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return bare


def _shape(info: onnx.ValueInfoProto) -> str:
    sizes = (str(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or "?" for dim in info.type.tensor_type.shape.dim)
    return f"[{', '.join(sizes)}]"


def _names_of_inputs(model: onnx.ModelProto) -> set[str]:
    return {dim.dim_param for info in model.graph.input for dim in info.type.tensor_type.shape.dim}
