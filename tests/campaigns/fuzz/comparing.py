"""Whether two lists of results are the same up to the order of sums.

Works around ORT-LOOP-NO-STEPS-SIZES.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from tests.campaigns.fuzz.edits import graphs_of

__all__ = ["coarseness", "difference"]

RELATIVE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 3e-4, "float64": 1e-9}


def coarseness(model: ModelProto) -> float:
    """Return the share by which numbers may differ in a model with halves, or with casts to floats, whatever their type.

    onnxruntime rounds to halves at places of its own choosing, and a double that was cast to a float has the digits of a float.
    """
    types = [tensor.data_type for graph in graphs_of(model) for tensor in graph.initializer]
    types += [info.type.tensor_type.elem_type for info in [*model.graph.input, *model.graph.output]]
    casts = {a.i for graph in graphs_of(model) for node in graph.node for a in node.attribute if a.name == "to"}
    shares = [RELATIVE[name] for kind, name in ((10, "float16"), (16, "bfloat16")) if kind in {*types, *casts}]
    return max([*shares, RELATIVE["float32"] if 1 in casts else 0.0])


def difference(before: Sequence[Any], after: Sequence[Any], least: float = 0.0) -> str | None:
    """What differs first; floats may differ by a share, ``least`` or more, of the largest number of their tensor."""
    for k, (a, b) in enumerate(zip(before, after, strict=True)):
        if isinstance(a, list) or isinstance(b, list):
            if not (isinstance(a, list) and isinstance(b, list) and len(a) == len(b)):
                return f"output {k}: another kind, or length, of sequence"
            said = difference(a, b, least)
        else:
            said = _of_tensors(np.asarray(a), np.asarray(b), least)
        if said:
            return f"output {k}: {said}"
    return None


def _of_tensors(a: np.ndarray, b: np.ndarray, least: float) -> str | None:
    if a.dtype == b.dtype and a.size == b.size == 0 and _says_less(a.shape, b.shape):
        return None
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{b.dtype}{list(b.shape)} for {a.dtype}{list(a.shape)}"
    if a.dtype.name not in RELATIVE:
        return None if a.tobytes() == b.tobytes() or np.array_equal(a, b) else f"other elements: {_short(b)} for {_short(a)}"
    share = max(RELATIVE[a.dtype.name], least)
    with np.errstate(invalid="ignore"):  # memory that nothing wrote may hold signalling NaNs
        a, b = a.astype(np.float64), b.astype(np.float64)
    odd = ~(np.isfinite(a) & np.isfinite(b))
    if not np.array_equal(a[odd], b[odd], equal_nan=True):
        return f"other infinities or NaN: {_short(b)} for {_short(a)}"
    apart = np.abs(a[~odd] - b[~odd]).max(initial=0.0)
    allowed = share * max(1.0, float(np.abs(a[~odd]).max(initial=0.0)))
    return f"apart by {apart:.3g}, allowed {allowed:.3g}" if apart > allowed else None


def _says_less(before: tuple[int, ...], after: tuple[int, ...]) -> bool:
    """Whether ``before`` is what onnxruntime gives for no steps: no more than what it could infer, and 0 for all else."""
    return before == (0,) or (len(before) == len(after) and all(a in (0, b) for a, b in zip(before, after, strict=True)))


def _short(array: np.ndarray) -> str:
    return " ".join(str(array.ravel()[:6].tolist()).split())
