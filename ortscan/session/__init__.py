"""onnxruntime sessions that optimise their model first.

``InferenceSession`` is a drop-in replacement for onnxruntime's class. ``patched`` makes third-party code use it. If a model cannot
be optimised, the session runs the original. The package ``pipeline`` does the optimisation itself.
"""

__all__: list[str] = []
