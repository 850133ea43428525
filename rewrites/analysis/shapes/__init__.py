"""Sizes: inferred by onnx, left open by it, or inferred wrongly.

This room writes types and shapes of values, and nothing else in a model. ``rewrites.graph.dims`` compares sizes.
"""

__all__: list[str] = []
