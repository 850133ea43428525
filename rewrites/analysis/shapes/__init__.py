"""Shape inference: runs onnx's inference, corrects wrong shapes, and infers sizes that onnx does not.

This package changes only the types and shapes of values in a model. ``rewrites.graph.dims`` compares sizes.
"""

__all__: list[str] = []
