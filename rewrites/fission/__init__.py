"""Splits a loop into the work before the recurrence, the recurrence, and the work after it.

The package does not recognise which recurrence a loop computes (``rewrites.recurrences`` does).

``rewrites.batching`` has the rules that run an operator for all steps at once.
"""

__all__: list[str] = []
