"""What ONNX's operators are: their versions, and the recurrent ones in full."""

__all__: list[str] = []
