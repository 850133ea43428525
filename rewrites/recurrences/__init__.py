"""Recognise recurrences by what a loop computes as a whole, whatever operators its body uses.

Each family has a folder with its readers, writers and rules. ``cells``: RNN, LSTM and GRU. ``cumulative``: sums, products,
extremes, latches and log-sum-exps. ``linear``: filters, gated and decaying states. ``outer_products``: matrix states, such as those
of linear attention. All families share ``closed_form``, ``fallback`` and ``results``.
"""

__all__: list[str] = []
