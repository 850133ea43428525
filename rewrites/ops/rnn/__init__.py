"""RNN, LSTM and GRU: the view of a node, its activations, and its equations as nodes."""

__all__: list[str] = []
