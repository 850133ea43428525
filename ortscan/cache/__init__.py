"""Optimised models kept on disk, so that a second start costs little more than onnxruntime's own load.

What is kept is bytes with a key, trusted by who may write it. How a model is optimised is in ``pipeline``, how it is opened in
``session``.
"""

__all__: list[str] = []
