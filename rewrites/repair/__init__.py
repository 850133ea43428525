"""Rewrites loops that onnxruntime computes incorrectly or refuses, or on which it crashes."""

__all__: list[str] = []
