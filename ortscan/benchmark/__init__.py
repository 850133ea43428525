"""What models cost on onnxruntime, side by side: a run at several sizes, loading, memory, and each loop.

What is measured is told with its noise: a difference that rounds with new sessions do not agree on is said not to be measurable.
"""

__all__: list[str] = []
