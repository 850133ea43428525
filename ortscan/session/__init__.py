"""The session plugin: onnxruntime sessions that optimise their model first.

``InferenceSession`` stands in for onnxruntime's own class; ``patched`` puts it there for code one does not own. What can go wrong
falls back to the original; how a model is optimised is in ``pipeline``.
"""

__all__: list[str] = []
