"""Loops that onnxruntime computes wrongly, refuses, or dies of, as ones that it runs. Nothing here makes a loop faster."""

__all__: list[str] = []
