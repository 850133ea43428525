"""Optimised models kept on disk, so that a second start costs little more than onnxruntime's own load."""

__all__: list[str] = []
