"""The compiler of ortscan. It rewrites onnx_ir models, and needs no runtime.

This package does not import onnxruntime or the ``ortscan`` package. If a rule needs a runtime, its context provides one.
"""

__all__: list[str] = []
