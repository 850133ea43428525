"""The session plugin: onnxruntime sessions that optimise their model first.

``InferenceSession`` stands in for onnxruntime's own class; ``patched`` puts it there for code one does not own.
"""

__all__: list[str] = []
