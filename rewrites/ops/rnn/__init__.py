"""RNN, LSTM and GRU: the view of a node, its activations, and its equations as nodes.

The code follows the specifications of the operators. Comments say where onnxruntime differs.
"""

__all__: list[str] = []
