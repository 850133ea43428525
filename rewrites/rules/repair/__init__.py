"""Loops that onnxruntime computes wrongly, refuses, or dies of, as ones that it runs."""

__all__: list[str] = []
