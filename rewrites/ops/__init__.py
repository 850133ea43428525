"""ONNX's operators: their traits, their versions, the recurrent operators in full, and onnxruntime's defects.

These are facts of single operators, and functions that read and write them. ``rewrites.loops`` handles loops.
"""

__all__: list[str] = []
