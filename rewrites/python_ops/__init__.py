"""Replaces nodes that onnxruntime cannot run by calls of Python, which ``ortscan.custom_ops`` runs."""

__all__: list[str] = []
