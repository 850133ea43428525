"""Nodes put out of the way of onnxruntime's faults, at the end."""

__all__: list[str] = []
