"""What onnxruntime says of a model's outputs before it is optimised, so that its session can go on saying it.

Where a file leaves an output's shape open onnxruntime works it out from the nodes, and may work out less from other nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx

from ortscan.modelio import Interface
from ortscan.running.crash_risks import crash_risks
from rewrites.base.raised_by import is_raised_by

__all__ = ["Known", "known_outputs", "with_known_outputs"]

_FATAL = 4
Known = Mapping[str, tuple[int, Sequence[int | str | None]]]


def known_outputs(hollow: onnx.ModelProto) -> Known:
    """Return the element type and shape of each tensor among the outputs, as a session does; none where no session can be made.

    None of a model whose session would end the process.
    """
    if crash_risks(hollow):
        return {}
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(hollow.SerializeToString(), options, ["CPUExecutionProvider"], enable_fallback=0)
    except Exception as error:
        if not is_raised_by(error, "onnxruntime"):
            raise
        return {}  # the outputs are then as they are declared
    kinds = {f"tensor({name.lower()})": number for name, number in onnx.TensorProto.DataType.items()}
    return {output.name: (kinds[output.type], output.shape) for output in session.get_outputs() if output.type in kinds}


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
