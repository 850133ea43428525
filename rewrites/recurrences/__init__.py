"""Recurrences recognised by what they compute, as a whole; never by how they are drawn.

Each family has a folder with all of it: what it reads, what it writes and its rules. ``cells``: RNN, LSTM and GRU. ``cumulative``:
sums, products, extremes, latches and log-sum-exps. ``linear``: states that are linear in what they were before.
``outer_products``: states that are matrices, such as linear attention. What several families share stands beside the folders.
"""

__all__: list[str] = []
