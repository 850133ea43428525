"""Models read for what they can be run on, and run on onnxruntime, in a process of their own where that may end it.

What is fed, and what the results are held against, is in ``verification``.
"""

__all__: list[str] = []
