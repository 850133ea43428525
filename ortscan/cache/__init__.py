"""Optimised models on disk. A second start of a model takes little longer than onnxruntime's own load.

An entry is a folder. Its name is a digest of everything that the entry depends on. ``pipeline`` optimises the models, and
``session`` opens them.
"""

__all__: list[str] = []
