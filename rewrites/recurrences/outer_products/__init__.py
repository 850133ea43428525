"""States that are matrices to which each step adds an outer product: linear attention and its relatives."""

__all__: list[str] = []
