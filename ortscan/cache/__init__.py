"""Optimised models on disk, so that a second start costs little more than onnxruntime's own load.

An entry is a folder named by a digest of all it depends on. ``pipeline`` optimises models and ``session`` opens them.
"""

__all__: list[str] = []
