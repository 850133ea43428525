"""Whether the operators of two models, as onnx infers them, tell the same type and shape of each value that both have.

Asked with a size for every free dimension, since a name says nothing where it does not come out: a row taken out of [3, 1, 4] and
squeezed has another rank with a batch of 1. What onnx cannot infer of either model is not compared.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import count

import onnx

from rewrites.raised_by import is_raised_by

__all__ = ["disagreement"]

_FIRST, _STEP = 11, 12
"""Free dimensions get 11, 23, 35, …: all different, none a divisor of another, and unlike the sizes that models have."""

_Known = tuple[int, list[int | None] | None]
"""An element type, and sizes where the rank is known."""


def disagreement(before: onnx.ModelProto, after: onnx.ModelProto) -> str | None:
    """Return what the two say differently of an output, or of a value between, in one line, or None.

    ``before`` must be sound at the sizes it is asked at: where inference finds contradictions in it, nothing is compared.
    """
    for sizes in (lambda: iter(count(_FIRST, _STEP)), _ones):
        old = _found(before, sizes, strict=True, inputs=after.graph.input)
        new = _found(after, sizes, strict=False) if old is not None else None
        for name, was in (old or {}).items():
            said = _contradiction(was, new.get(name)) if new is not None else None
            if said is not None:
                return f"'{name}' {said}"
    return None


def _ones() -> Iterator[int]:
    while True:
        yield 1


def _contradiction(was: _Known, now: _Known | None) -> str | None:
    if now is None:
        return None
    if was[0] and now[0] and was[0] != now[0]:
        names = [onnx.TensorProto.DataType.Name(one).lower() for one in (was[0], now[0])]
        return f"is of {names[0]} in the original and of {names[1]} in the result"
    old, new = was[1], now[1]
    if old is None or new is None:
        return None
    if len(old) != len(new) or any(None not in (one, other) and one != other for one, other in zip(old, new, strict=True)):
        return f"has the shape {_shown(old)} in the original and {_shown(new)} in the result"
    return None


def _shown(dims: Iterable[int | None]) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def _found(
    model: onnx.ModelProto, sizes: Callable[[], Iterator[int]], strict: bool, inputs: Iterable[onnx.ValueInfoProto] = ()
) -> dict[str, _Known] | None:
    """Infer all values of the main graph with ``sizes`` for its free dimensions; None where that cannot be done.

    ``inputs``: where others than the model's own are, which may have sizes built in.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    graph, chosen, fresh = proto.graph, dict[str, int](), sizes()
    declared = {info.name: info for info in inputs}
    for info in graph.input:
        if info.name in declared:
            info.CopyFrom(declared[info.name])
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                name = dim.dim_param or f"{info.name}[{axis}]"
                dim.dim_value = chosen[name] if name in chosen else chosen.setdefault(name, next(fresh))
    for info in graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    graph.ClearField("value_info")
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, check_type=strict, strict_mode=strict, data_prop=True).graph
    except Exception as error:
        if not is_raised_by(error, "onnx"):
            raise
        return None
    values = [info for info in (*inferred.output, *inferred.value_info) if info.type.HasField("tensor_type")]
    return {info.name: _known(info.type.tensor_type) for info in values}


def _known(tensor: onnx.TypeProto.Tensor) -> _Known:
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    return tensor.elem_type, [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
