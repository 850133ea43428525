"""Rewrites RNN, LSTM and GRU nodes that onnxruntime cannot run. Nodes that it runs keep their numbers.

``rewrites.ops.rnn`` has the equations.
"""

__all__: list[str] = []
