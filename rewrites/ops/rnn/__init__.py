"""The recurrent operators RNN, LSTM and GRU.

``recurrent_node`` reads and replaces their nodes, ``functions`` has their activations, and ``step`` emits their equations. The code
follows the specifications of the operators. Comments say where onnxruntime differs.
"""

__all__: list[str] = []
