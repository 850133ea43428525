"""Compute states that accumulate for all steps at once.

They are running sums, products, means, extremes, latches, flags and log-sum-exps.
"""

__all__: list[str] = []
