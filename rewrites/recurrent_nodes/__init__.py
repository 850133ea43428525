"""RNN, LSTM and GRU nodes that onnxruntime cannot run, as nodes that it can. What runs keeps its numbers.

The equations themselves are in ``rewrites.ops.rnn``.
"""

__all__: list[str] = []
