"""States that accumulate: running sums, products, means, extremes, latches, flags and log-sum-exps, for all steps at once."""

__all__: list[str] = []
