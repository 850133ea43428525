"""Matrices that take up an outer product in each step: linear attention and its relatives."""

__all__: list[str] = []
