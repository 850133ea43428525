"""A loop split into what can leave it and what cannot: before, recurrence, after. No recurrence is recognised here.

How an operator runs for all steps at once is ``rewrites.batching``'s.
"""

__all__: list[str] = []
