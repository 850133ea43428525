"""Decides if onnx's reference implementation of an operator is correct, and corrects some operators.

The known errors were found by comparisons with onnxruntime on random attributes, in a type that both support. The reference has
these errors, which are corrected here:

* It computes Erf of float64 in float32.
* It computes LRN along the batch axis instead of the channels.
* It is wrong for OneHot with a depth of shape [1], Softsign of a scalar, and TopK of -1 or of two numbers.

Works around ONNX-REFERENCE-OPERATORS.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from rewrites.base.errors import is_raised_by
from rewrites.base.not_applicable import NotApplicable

__all__ = ["reference_evaluator", "reference_runs"]

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


def corrected_operators() -> "list[type[OpRun]]":
    """Return the corrected operators for ``ReferenceEvaluator``."""
    from onnx.reference.op_run import OpRun

    class Erf(OpRun):
        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (np.vectorize(math.erf, otypes=[np.float64])(x).astype(x.dtype).reshape(x.shape),)

    class LRN(OpRun):
        def _run(
            self, x: np.ndarray, alpha: float = 0.0001, beta: float = 0.75, bias: float = 1.0, size: int = 1
        ) -> tuple[np.ndarray]:
            channels, before, after = x.shape[1], (size - 1) // 2, size // 2
            sums = [(x[:, max(0, c - before) : c + after + 1] ** 2).sum(1) for c in range(channels)]
            sums_of_squares = np.stack(sums, 1) if sums else x
            return ((x / (bias + alpha / size * sums_of_squares) ** beta).astype(x.dtype),)

    class OneHot(OpRun):
        def _run(self, indices: np.ndarray, depth: np.ndarray, values: np.ndarray, axis: int = -1) -> tuple[np.ndarray]:
            count = int(_only_number(depth, "depth"))
            if count < 1:
                raise ValueError(f"depth is {count}, which is below 1")
            places = indices.astype(np.int64)[..., None]
            on = np.where(places < 0, places + count, places) == np.arange(count)
            return (np.moveaxis(np.where(on, values[1], values[0]).astype(values.dtype), -1, axis),)

    class Softsign(OpRun):
        def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
            return (np.asarray(x / (1 + np.abs(x)), x.dtype),)

    class TopK(OpRun):
        def _run(self, x: np.ndarray, k: np.ndarray, axis: int = -1, largest: int = 1, sorted: int = 1) -> tuple[Any, Any]:
            count, size = int(_only_number(k, "k")), x.shape[axis]
            if not 0 <= count <= size:
                raise ValueError(f"k is {count}, which is not from 0 to {size}")
            if largest:
                order = size - 1 - np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
            else:
                order = np.argsort(x, axis, kind="stable")
            first = np.take(order, np.arange(count), axis).astype(np.int64)
            return np.take_along_axis(x, first, axis), first

    return [Erf, LRN, OneHot, Softsign, TopK]


def _only_number(value: np.ndarray, name: str) -> Any:
    if value.size != 1:
        raise ValueError(f"{name} has {value.size} numbers, not one")
    return value.reshape(-1)[0]


_ONLY_SINGLE = frozenset(
    {"AffineGrid", "CausalConvWithState", "GridSample", "LinearAttention", "MelWeightMatrix", "TfIdfVectorizer"}
)
"""Operators that the reference always computes in float32."""

_CODE = "PYTHON-OP-REFERENCE"


def reference_runs(model: onnx.ModelProto) -> NotApplicable | None:
    """Return the reason why onnx's reference cannot run the single node of ``model``; None if it can."""
    node = model.graph.node[0]
    kinds = {info.type.tensor_type.elem_type for info in (*model.graph.input, *model.graph.output)}
    if node.op_type in _ONLY_SINGLE and onnx.TensorProto.DOUBLE in kinds:
        return NotApplicable(_CODE, f"the reference of {node.op_type} computes in float32")
    wrong = _wrong_attributes(node)
    if wrong is not None:
        return NotApplicable(_CODE, f"the reference of {node.op_type} is wrong with {wrong}")
    try:
        reference_evaluator(model)
    except Exception as error:
        if not is_raised_by(error, "onnx", "numpy"):
            raise
        return NotApplicable(_CODE, (str(error).splitlines() or [type(error).__name__])[0])
    return None


def reference_evaluator(model: onnx.ModelProto) -> Any:
    """Return onnx's reference evaluator for ``model``, with the corrected operators."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model, new_ops=corrected_operators())


def _wrong_attributes(node: onnx.NodeProto) -> str | None:
    """Return words for the attributes of ``node`` that the reference handles incorrectly, or None."""
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    same = attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER")
    match node.op_type:
        case "MaxPool":
            return "pads and steps"
        case "AveragePool" | "LpPool":
            return _first_true(
                {"ceil_mode": attributes.get("ceil_mode", 0) == 1, "dilations": max(attributes.get("dilations", [1])) > 1}
            )
        case "ConvTranspose":
            return _first_true({"auto_pad": same, "group": attributes.get("group", 1) != 1})
        case "GridSample":
            return _first_true({"mode": attributes.get("mode") in (b"cubic", b"bicubic")})
        case "Unique":
            return _first_true({"sorted = 0": attributes.get("sorted", 1) == 0 and "axis" not in attributes})
        case "Resize":
            return _first_true({"coordinate_transformation_mode": not _resizes_correctly(node, attributes)})
    return None


def _resizes_correctly(node: onnx.NodeProto, attributes: dict[str, Any]) -> bool:
    """Return True if the reference computes the positions of the Resize ``node`` correctly.

    The reference computes wrong positions if sizes are rounded, and in modes with special cases. ``attributes``: the attributes of
    the node.
    """
    mode = attributes.get("coordinate_transformation_mode", b"half_pixel")
    if mode == b"align_corners":
        return len(node.input) > 3 and attributes.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    return mode in (b"half_pixel", b"asymmetric") or (
        mode == b"half_pixel_symmetric" and attributes.get("mode", b"nearest") != b"nearest"
    )


def _first_true(cases: dict[str, bool]) -> str | None:
    return next((name for name, holds in cases.items() if holds), None)
