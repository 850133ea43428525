"""The compiler of ortscan. It rewrites onnx_ir models and needs no runtime.

This package imports neither onnxruntime nor the ``ortscan`` package. If a rule must run nodes, it calls functions of its context.
"""

__all__: list[str] = []
