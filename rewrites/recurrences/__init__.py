"""Recurrences recognised by what they compute, as a whole; never by how they are drawn.

Each family has a folder with its readers, writers and rules. ``cells``: RNN, LSTM and GRU. ``cumulative``: sums, products,
extremes, latches and log-sum-exps. ``linear``: filters, gated and decaying states. ``outer_products``: matrices, such as linear
attention. The driver of closed forms, fallbacks and results are for all families.
"""

__all__: list[str] = []
