"""Splits a loop into the work before the recurrence, the recurrence, and the work after it.

``rewrites.batching`` has the rules that run an operator for all steps at once. ``rewrites.recurrences`` recognises which recurrence
a loop computes.
"""

__all__: list[str] = []
