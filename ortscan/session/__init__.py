"""onnxruntime sessions that optimise their model first.

``InferenceSession`` is a drop-in replacement for onnxruntime's class. ``patched`` installs it for third-party code. If anything
fails, the original model runs. The package ``pipeline`` optimises the model.
"""

__all__: list[str] = []
