"""RNN, LSTM and GRU: the view of a node, its activations, and its equations as nodes.

All follow the operators' texts. Comments name the points in which onnxruntime differs.
"""

__all__: list[str] = []
