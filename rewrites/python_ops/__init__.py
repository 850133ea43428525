"""Replaces nodes that onnxruntime cannot run by calls to Python, which ``ortscan.custom_ops`` runs."""

__all__: list[str] = []
