"""The compiler of ortscan: onnx_ir in, onnx_ir out, without a runtime.

Nothing here imports onnxruntime or the ``ortscan`` package; what a rule needs from a runtime it is given by its context.
"""

__all__: list[str] = []
