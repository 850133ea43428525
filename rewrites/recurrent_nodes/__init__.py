"""Rewrites RNN, LSTM and GRU nodes that onnxruntime cannot run. All other nodes keep their results.

``rewrites.ops.rnn`` has the equations of the nodes.
"""

__all__: list[str] = []
