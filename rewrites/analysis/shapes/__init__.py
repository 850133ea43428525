"""Sizes: what onnx infers, what it leaves open, what it takes for certain and is not, and how sizes compare.

Types and shapes of values are written here, and nothing else of a model.
"""

__all__: list[str] = []
