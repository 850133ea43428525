"""Parts of a loop stacked over all steps, or made loops of their own; what that holds in memory, and whether it pays.

How an operator runs for all steps at once is ``rewrites.batching``'s, where to cut ``rewrites.analysis.cut``'s.
"""

__all__: list[str] = []
