"""Small questions to onnxruntime: versions, kernels, constants and error messages. Whole models run in ``running``."""

__all__: list[str] = []
