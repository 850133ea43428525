"""A loop split into what can leave it and what cannot: before, recurrence, after. No recurrence is recognised here."""

__all__: list[str] = []
