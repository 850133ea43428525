"""What onnx's reference of an operator can be trusted with.

Compared with onnxruntime on random attributes in a type that both have, it computes something else, or nothing, in the cases below.

Works round ONNX-REFERENCE-OPERATORS.
"""

from typing import Any

import onnx

from rewrites.base.not_applicable import NotApplicable
from rewrites.base.raised_by import is_raised_by
from rewrites.python_ops.corrected import corrected_operators

__all__ = ["reference_evaluator", "reference_runs"]

_ONLY_SINGLE = frozenset(
    {"AffineGrid", "CausalConvWithState", "GridSample", "LinearAttention", "MelWeightMatrix", "TfIdfVectorizer"}
)
"""Operators whose reference computes in float32, whatever the type."""

_CODE = "PYTHON-OP-REFERENCE"


def reference_runs(model: onnx.ModelProto) -> NotApplicable | None:
    """Say why onnx's reference does not run the one operator of ``model``, or None where it does, in the type asked for."""
    node = model.graph.node[0]
    kinds = {info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)}
    if node.op_type in _ONLY_SINGLE and onnx.TensorProto.DOUBLE in kinds:
        return NotApplicable(_CODE, f"the reference of {node.op_type} computes in float32")
    wrong = _wrong_with(node)
    if wrong is not None:
        return NotApplicable(_CODE, f"the reference of {node.op_type} is not right with {wrong}")
    try:
        reference_evaluator(model)
    except Exception as error:
        if not is_raised_by(error, "onnx", "numpy"):
            raise
        return NotApplicable(_CODE, (str(error).splitlines() or [type(error).__name__])[0])
    return None


def reference_evaluator(model: onnx.ModelProto) -> Any:
    """Make onnx's evaluator of ``model``, with some operators put right."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=corrected_operators())


def _wrong_with(node: onnx.NodeProto) -> str | None:
    """Name the attributes of this node that the reference does not do as the operator's text says."""
    given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    same = given.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    match node.op_type:
        case "MaxPool":
            return "pads and steps"
        case "AveragePool" | "LpPool":
            return _first({"ceil_mode": given.get("ceil_mode", 0) == 1, "dilations": max(given.get("dilations", [1])) > 1})
        case "ConvTranspose":
            return _first({"auto_pad": same, "group": given.get("group", 1) != 1})
        case "GridSample":
            return _first({"mode": given.get("mode") in (b"cubic", b"bicubic")})
        case "Unique":
            return _first({"sorted = 0": given.get("sorted", 1) == 0 and "axis" not in given})
        case "Resize":
            return _first({"coordinate_transformation_mode": not _resizes_rightly(node, given)})
    return None


def _resizes_rightly(node: onnx.NodeProto, given: dict[str, Any]) -> bool:
    """Whether positions come out right: not where sizes are rounded, and not in the modes with special cases."""
    way = given.get("coordinate_transformation_mode", b"half_pixel")
    if way == b"align_corners":
        return len(node.input) > 3 and given.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    return way in (b"half_pixel", b"asymmetric") or (way == b"half_pixel_symmetric" and given.get("mode", b"nearest") != b"nearest")


def _first(cases: dict[str, bool]) -> str | None:
    return next((name for name, holds in cases.items() if holds), None)
