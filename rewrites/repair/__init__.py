"""Rewrites loops that onnxruntime computes wrongly, refuses or crashes on. Nothing here makes a loop faster."""

__all__: list[str] = []
