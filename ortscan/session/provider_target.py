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

    onnxruntime skips providers that are not available. If no provider remains, it uses the CPU provider, so the target is ``cpu``.
    If the provider is unknown to ortscan, the target is ``onnx``, for which only standard operators are used.

    Args:
        providers: the execution providers of the session, as names or (name, options).
        available: the names of the available providers.
        chosen_elsewhere: True if providers were added to the SessionOptions. They cannot be read from there, so the target is
            ``onnx`` if ``providers`` is empty.
    """
    if not providers or not isinstance(providers, Sequence):  # onnxruntime raises an error if this is no sequence
        return "onnx" if chosen_elsewhere else "cpu"
    names = [provider[0] if isinstance(provider, tuple) and provider else provider for provider in providers]
    usable = (name for name in names if isinstance(name, str) and name in available and name not in _RUNS_NO_OPERATOR)
    return _TARGETS.get(next(usable, _CPU), "onnx")
