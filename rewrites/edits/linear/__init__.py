"""States that are linear in what they were before, for all steps at once."""

__all__: list[str] = []
