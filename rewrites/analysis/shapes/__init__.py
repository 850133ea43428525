"""Sizes: what onnx infers, what it leaves open, what it takes for certain and is not, and how sizes compare."""

__all__: list[str] = []
