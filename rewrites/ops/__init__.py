"""What ONNX's operators are: their traits, their versions, the recurrent ones in full, and what onnxruntime gets wrong of them.

Facts of single operators, and ways to read and write them; loops are ``rewrites.loops``'.
"""

__all__: list[str] = []
