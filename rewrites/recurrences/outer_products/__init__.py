"""Rewrite matrix states to which each step adds an outer product, as in linear attention."""

__all__: list[str] = []
