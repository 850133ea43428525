"""Linear states: filters, gated and decaying states."""

__all__: list[str] = []
