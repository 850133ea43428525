"""Changes nodes of the whole model that would trigger defects of onnxruntime, after all other rules."""

__all__: list[str] = []
