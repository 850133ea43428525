"""A loop split into what can leave it and what cannot: before, recurrence, after."""

__all__: list[str] = []
