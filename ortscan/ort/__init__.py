"""Ask onnxruntime small questions: versions, kernels, constants, the meaning of its errors. Whole models run in ``running``."""

__all__: list[str] = []
