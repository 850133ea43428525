"""Queries of onnxruntime: versions, kernels, constants and error messages. ``running`` runs whole models."""

__all__: list[str] = []
