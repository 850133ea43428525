"""Nodes put out of the way of onnxruntime's faults, at the end, on the model as a whole. Nothing here makes a model faster."""

__all__: list[str] = []
