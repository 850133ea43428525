"""Rules that run after all others. Most change nodes that would trigger defects of onnxruntime."""

__all__: list[str] = []
