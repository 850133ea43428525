"""Copies of the original that say what is right: computed by onnxruntime as the operators mean it, in float64, or with noise."""

__all__: list[str] = []
