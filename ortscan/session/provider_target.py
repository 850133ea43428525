"""Choose the target to optimise a session's model for, from the execution providers of the session."""

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
"""Providers that run no standard operators. Nodes assigned to them run on the CPU."""


def target_of(providers: Sequence[Any] | None, available: Container[str], chosen_elsewhere: bool = False) -> str:
    """Return the name of the target for the first of ``providers`` that is ``available``.

    If none of ``providers`` is available, onnxruntime uses the CPU provider, so the target is ``cpu``. If ortscan does not know the
    provider, the target is ``onnx``, for which only standard operators are used.

    Args:
        providers: the execution providers of the session, as names or (name, options).
        available: the names of the available providers.
        chosen_elsewhere: True if providers were added to the SessionOptions. ortscan cannot read which providers these are. So if
            ``providers`` is empty, the target is ``onnx``.
    """
    if not providers or not isinstance(providers, Sequence):  # onnxruntime raises an error if this is no sequence
        return "onnx" if chosen_elsewhere else "cpu"
    names = [provider[0] if isinstance(provider, tuple) and provider else provider for provider in providers]
    usable = (name for name in names if isinstance(name, str) and name in available and name not in _RUNS_NO_OPERATOR)
    return _TARGETS.get(next(usable, _CPU), "onnx")
