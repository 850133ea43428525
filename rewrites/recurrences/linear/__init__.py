"""States that are linear in what they were before: filters, gated and decaying states, read, and written for all steps at once."""

__all__: list[str] = []
