"""ONNX's operators: their traits, their versions, the recurrent operators in detail, and onnxruntime's defects.

This package has facts about single operators, and functions that read and emit their nodes. ``rewrites.loops`` handles loops.
"""

__all__: list[str] = []
