"""RNN, LSTM and GRU: the view of a node, its activations, and its equations as nodes.

By the operators' texts; where onnxruntime departs from those, it says so.
"""

__all__: list[str] = []
