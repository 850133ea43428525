"""Sizes: what onnx infers, what it leaves open, and what it takes for certain and is not.

Types and shapes of values are written here, and nothing else of a model. How sizes compare is known in ``rewrites.graph.dims``.
"""

__all__: list[str] = []
