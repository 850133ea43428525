"""Run onnx's strict shape inference, which also checks the declared shapes.

The inference computes the elements of small vectors, because shapes may depend on these elements.

Works around ONNX-NAMES-OF-OTHER-GRAPHS, ONNX-OUTER-PRODUCT and ONNX-LONG-VECTORS.
"""

import onnx

from ortscan.modelio import LoadedModel
from ortscan.ort.model_errors import error_of_onnx
from rewrites.analysis.shapes.long_vectors import has_long_vectors
from rewrites.analysis.shapes.shown_scopes import make_names_unique

__all__ = ["inference_fault", "infer_strictly"]

_NO_FAULT = "Invalid rank for"
"""An error that onnx reports wrongly, because it propagates integer matrices through sums as if they were vectors."""


def inference_fault(loaded: LoadedModel, proto: onnx.ModelProto) -> str | None:
    """Return the error of onnx's strict shape inference, or None.

    See ``infer_strictly`` for the arguments.
    """
    result = infer_strictly(loaded, proto)
    return result if isinstance(result, str) else None


def infer_strictly(loaded: LoadedModel, proto: onnx.ModelProto) -> onnx.ModelProto | str:
    """Return a copy of ``proto`` with the inferred shapes, or the error of onnx's strict shape inference.

    Args:
        loaded: the model that ``proto`` was made from.
        proto: the model, possibly without large weights. In the copy, names of values in nested graphs may differ.
    """
    unique = onnx.ModelProto()
    unique.CopyFrom(proto)
    make_names_unique(unique)

    def infer(data_prop: bool) -> onnx.ModelProto | str:
        results: list[onnx.ModelProto] = []
        fault = error_of_onnx(
            lambda: results.append(
                onnx.shape_inference.infer_shapes(unique, check_type=True, strict_mode=True, data_prop=data_prop)
            )
        )
        return fault if fault is not None else results[0]

    result = infer(not has_long_vectors(loaded.model.graph, loaded.model.functions))
    return infer(False) if isinstance(result, str) and _NO_FAULT in result else result
