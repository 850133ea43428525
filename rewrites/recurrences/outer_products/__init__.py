"""Matrix states to which each step adds an outer product: linear attention and similar recurrences."""

__all__: list[str] = []
