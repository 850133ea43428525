"""Finds unrolled steps in a model: rows of tensors, equal nodes, and the chains that connect them."""

__all__: list[str] = []
