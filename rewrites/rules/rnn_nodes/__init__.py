"""RNN, LSTM and GRU nodes that onnxruntime cannot run, as nodes that it can. What runs keeps its numbers."""

__all__: list[str] = []
