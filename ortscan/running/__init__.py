"""Models read for what they can be run on, and run on onnxruntime, in a process of their own where that may end it."""

__all__: list[str] = []
