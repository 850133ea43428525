"""Constants folded, equal work merged, copies read through, branches decided."""

__all__: list[str] = []
