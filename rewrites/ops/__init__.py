"""What ONNX's operators are: their versions, and the recurrent ones in full.

Facts of single operators, and ways to read and write them; loops are ``rewrites.loops``'.
"""

__all__: list[str] = []
