"""What onnxruntime says of a model's outputs before it is optimised, so that its session can go on saying it.

Where a file leaves an output's shape open onnxruntime works it out from the nodes, and may work out less from other nodes.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx
import onnxruntime as ort

from ortscan.modelio import Interface
from ortscan.verification.crash_risks import crash_risks

__all__ = ["Known", "known_outputs", "with_known_outputs"]

_SMALL = 256
_FATAL = 4
_TENSOR = re.compile(r"tensor\((\w+)\)")
Known = Mapping[str, tuple[int, Sequence[int | str | None]]]


def known_outputs(proto: onnx.ModelProto) -> Known:
    """Give the element type and shape of each tensor among the outputs, as a session of ``proto`` does; none where it has none.

    None of a model whose session would end the process. Large weights do not count: they become inputs of a model that is otherwise
    the same, so that nothing is read or computed.
    """
    if crash_risks(proto):
        return {}
    hollow = onnx.ModelProto()
    hollow.CopyFrom(proto)
    _make_inputs_of_weights(hollow.graph)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(hollow.SerializeToString(), options, ["CPUExecutionProvider"])
    except Exception:  # onnxruntime raises classes of its own, without a common base; the outputs are then as they are declared
        return {}
    found = ((output, _TENSOR.fullmatch(output.type)) for output in session.get_outputs())
    return {output.name: (onnx.TensorProto.DataType.Value(kind[1].upper()), output.shape) for output, kind in found if kind}


def _make_inputs_of_weights(graph: onnx.GraphProto) -> None:
    listed = {info.name for info in graph.input}
    kept = []
    for tensor in graph.initializer:
        size = 1
        for dim in tensor.dims:
            size *= dim
        if size <= _SMALL and tensor.data_location != onnx.TensorProto.EXTERNAL:
            kept.append(tensor)
        elif tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    del graph.initializer[:]
    graph.initializer.extend(kept)


def with_known_outputs(interface: Interface, known: Known) -> Interface:
    """Declare what is ``known`` of the outputs where nothing is declared, and sizes where they only have names."""
    outputs = []
    for info in interface.outputs:
        declared = onnx.ValueInfoProto()
        declared.CopyFrom(info)
        if info.name in known:
            _declare(declared.type, *known[info.name])
        outputs.append(declared)
    return replace(interface, outputs=tuple(outputs))


def _declare(words: onnx.TypeProto, element: int, shape: Sequence[int | str | None]) -> None:
    if not words.WhichOneof("value"):
        words.tensor_type.elem_type = element
    if not shape or not words.HasField("tensor_type"):  # an unknown shape and that of a scalar look the same
        return
    dims = words.tensor_type.shape.dim
    if not words.tensor_type.HasField("shape"):
        for _ in shape:
            dims.add()
    if len(dims) == len(shape):
        for dim, size in zip(dims, shape, strict=True):
            _know(dim, size)


def _know(dim: onnx.TensorShapeProto.Dimension, size: int | str | None) -> None:
    if isinstance(size, int) and not dim.HasField("dim_value"):
        dim.dim_value = size
    elif isinstance(size, str) and not dim.WhichOneof("value"):
        dim.dim_param = size
