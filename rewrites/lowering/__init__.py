"""RNN, LSTM and GRU nodes that onnxruntime cannot run, as nodes that it can.

    LSTM <layout = 1> (x, W, R)    ->    Transpose, LSTM (x, W, R), Transpose

``recurrent_node`` reads a node by the operator's text, whatever onnxruntime thinks of it; the rules, one a file, change what it
does not take; ``lower`` applies them. The meaning of a node that onnxruntime refuses is that of the operator's equations.
"""

__all__: list[str] = []
