"""onnxruntime asked small questions: versions, kernels, constants, what its errors mean.

Runs of whole models are in ``running``, comparisons in ``verification``.
"""

__all__: list[str] = []
