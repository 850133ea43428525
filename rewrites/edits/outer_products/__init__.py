"""States that are matrices, written for all steps at once."""

__all__: list[str] = []
