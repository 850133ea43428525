"""Whether a model that was rewritten is still one: for onnx's checker, and for onnxruntime.

Each is asked of the original only where the result fails, since a result can be no better than what it was made from.
"""

from contextlib import ExitStack

import onnx

from ortscan.modelio import LoadedModel, ModelLike
from ortscan.verification.runner import Runner, one_line
from ortscan.verification.source import Source, open_source

__all__ = ["new_fault"]


def new_fault(before: ModelLike, after: LoadedModel) -> str | None:
    """Say what is wrong with ``after`` and was not with ``before``, in one line, or None."""
    with ExitStack() as stack:
        result = open_source(after, stack)
        for find in (_checker_fault, _load_fault):
            fault = find(result)
            if fault is not None and find(open_source(before, stack)) is None:
                return fault
    return None


def _checker_fault(source: Source) -> str | None:
    try:
        onnx.checker.check_model(_without_data_files(source.proto), full_check=True)
    except Exception as error:  # the checker raises its own classes, and inference errors of several others
        return f"onnx.checker says: {one_line(error)}"
    return None


def _load_fault(source: Source) -> str | None:
    error = Runner(source, [], ["CPUExecutionProvider"], optimise=False).error
    return None if error is None else f"onnxruntime says: {error}"


def _without_data_files(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Declare weights in data files as inputs, so that the checker does not look for the files."""
    external = onnx.TensorProto.EXTERNAL
    names = [tensor.name for tensor in proto.graph.initializer if tensor.data_location == external]
    if not names:
        return proto
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    listed = {info.name for info in copy.graph.input}
    for i in reversed(range(len(copy.graph.initializer))):
        tensor = copy.graph.initializer[i]
        if tensor.data_location == external:
            if tensor.name not in listed:
                copy.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
            del copy.graph.initializer[i]
    return copy
