"""Splits a loop into work before the recurrence, the recurrence, and work after it. No recurrence is recognised here.

``rewrites.batching`` runs an operator for all steps at once.
"""

__all__: list[str] = []
