"""Rewrites RNN, LSTM and GRU nodes that onnxruntime cannot run.

The results of all other nodes stay the same. The equations of the nodes are in ``rewrites.ops.rnn``.
"""

__all__: list[str] = []
