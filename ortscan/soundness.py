"""Whether a model that was rewritten is still one: for onnx's checker, and for onnxruntime.

Each is asked of the original only where the result fails, since a result can be no better than what it was made from. Neither is
shown large weights, which are declared as inputs instead: no operator's right to exist depends on what they hold.
"""

from contextlib import ExitStack

import onnx

from ortscan.modelio import LoadedModel, ModelLike
from ortscan.verification.runner import Runner, one_line
from ortscan.verification.source import Source, open_source
from rewrites.raised_by import is_raised_by

__all__ = ["checker_fault", "new_fault"]

_LARGE_BYTES = 1 << 16


def new_fault(before: ModelLike, after: LoadedModel) -> str | None:
    """Say what is wrong with ``after`` and was not with ``before``, in one line, or None."""
    with ExitStack() as stack:
        result = _without_weights(open_source(after, stack).proto)
        for find in (_checker_says, _load_fault):
            fault = find(result)
            if fault is not None and find(_without_weights(open_source(before, stack).proto)) is None:
                return fault
    return None


def checker_fault(proto: onnx.ModelProto) -> str | None:
    """Say what onnx's checker has against a model, weights aside, in one line, or None."""
    return _checker_says(_without_weights(proto))


def _checker_says(proto: onnx.ModelProto) -> str | None:
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as error:
        if not is_raised_by(error, "onnx"):
            raise
        return f"onnx.checker says: {one_line(error)}"
    return None


def _load_fault(proto: onnx.ModelProto) -> str | None:
    source = Source(proto, proto.SerializeToString())
    error = Runner(source, [], ["CPUExecutionProvider"], optimise=False).error
    return None if error is None else f"onnxruntime says: {error}"


def _without_weights(proto: onnx.ModelProto) -> onnx.ModelProto:
    slim, graph = onnx.ModelProto(), onnx.GraphProto()
    for owner, copy, left_out in ((proto, slim, "graph"), (proto.graph, graph, "initializer")):
        for field, value in owner.ListFields():
            if field.name == left_out:
                continue
            if hasattr(value, "extend"):
                getattr(copy, field.name).extend(value)
            elif hasattr(value, "CopyFrom"):
                getattr(copy, field.name).CopyFrom(value)
            else:
                setattr(copy, field.name, value)
    listed = {info.name for info in graph.input}
    for tensor in proto.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.ByteSize() <= _LARGE_BYTES:
            graph.initializer.append(tensor)
        elif tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    slim.graph.CopyFrom(graph)
    return slim
