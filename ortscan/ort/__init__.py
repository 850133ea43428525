"""Queries of onnxruntime: versions, kernels, constants, error messages. ``running`` runs models."""

__all__: list[str] = []
