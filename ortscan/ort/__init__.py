"""onnxruntime asked small questions: versions, kernels, constants, what its errors mean."""

__all__: list[str] = []
