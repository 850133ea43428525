"""Changes nodes that would trigger defects of onnxruntime, at the end and on the whole model. Nothing here makes a model faster."""

__all__: list[str] = []
