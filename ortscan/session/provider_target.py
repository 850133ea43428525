"""From the execution providers of a session to the target its model is optimised for."""

from collections.abc import Sequence
from typing import Any

__all__ = ["target_of"]

_TARGETS = {
    "CPUExecutionProvider": "cpu",
    "CUDAExecutionProvider": "cuda",
    "TensorrtExecutionProvider": "tensorrt",
    "NvTensorRTRTXExecutionProvider": "tensorrt",
    "DmlExecutionProvider": "directml",
    "WebGpuExecutionProvider": "webgpu",
    "CoreMLExecutionProvider": "coreml",
    "NnapiExecutionProvider": "nnapi",
    "QNNExecutionProvider": "qnn",
    "OpenVINOExecutionProvider": "openvino",
}


def target_of(providers: Sequence[Any] | None, chosen_elsewhere: bool = False) -> str:
    """Give the target for the first of ``providers`` (names, or pairs of a name and options).

    A provider that is not known gets ``onnx``, which means standard operators only; so do devices chosen on the SessionOptions
    (``chosen_elsewhere``), which cannot be read from there. Without providers onnxruntime runs on the CPU.
    """
    if not providers:
        return "onnx" if chosen_elsewhere else "cpu"
    first = providers[0]
    return _TARGETS.get(first if isinstance(first, str) else first[0], "onnx")
