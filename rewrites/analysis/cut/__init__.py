"""Where a loop may be cut in two: components of its states, what can be stacked, sizes, costs and the minimum cut."""

__all__: list[str] = []
