"""The compiler of ortscan: it takes and returns onnx_ir models, without a runtime.

Nothing here imports onnxruntime or the ``ortscan`` package. If a rule needs a runtime, its context provides it.
"""

__all__: list[str] = []
