"""From the execution providers of a session to the target its model is optimised for."""

from collections.abc import Container, Sequence
from typing import Any

__all__ = ["target_of"]

_CPU = "CPUExecutionProvider"
_TARGETS = {
    _CPU: "cpu",
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
_RUNS_NO_OPERATOR = frozenset({"AzureExecutionProvider"})
"""Of the standard ones: what it is given runs on the CPU."""


def target_of(providers: Sequence[Any] | None, available: Container[str], chosen_elsewhere: bool = False) -> str:
    """Return the target for the first of ``providers`` (names, or pairs of a name and options) that is ``available``.

    onnxruntime leaves out those that are not, and runs on the CPU where none is left, or none was named. A provider that is not
    known gets ``onnx``, which means standard operators only; so do devices chosen on the SessionOptions (``chosen_elsewhere``),
    which cannot be read from there.
    """
    if not providers or not isinstance(providers, Sequence):  # onnxruntime says what is wrong with the latter
        return "onnx" if chosen_elsewhere else "cpu"
    names = [one[0] if isinstance(one, tuple) and one else one for one in providers]
    usable = (name for name in names if isinstance(name, str) and name in available and name not in _RUNS_NO_OPERATOR)
    return _TARGETS.get(next(usable, _CPU), "onnx")
