"""RNN, LSTM and GRU nodes that onnxruntime cannot run, as nodes that it can."""

__all__: list[str] = []
