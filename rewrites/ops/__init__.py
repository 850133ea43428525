"""Facts about single ONNX operators, and functions that read and emit their nodes.

The facts are the operators' traits, their versions, and onnxruntime's defects. Recurrent operators are described in detail.
``rewrites.loops`` handles loops.
"""

__all__: list[str] = []
