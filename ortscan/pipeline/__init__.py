"""The way of a model: lifted, rewritten, checked, compared."""

__all__: list[str] = []
