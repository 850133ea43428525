"""Recurrences written for all steps at once, and what stands in a loop for a state that has such a form."""

__all__: list[str] = []
