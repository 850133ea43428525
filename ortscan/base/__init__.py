"""Tools for every floor: files, locks, subprocesses, and walks over protobuf models. Nothing here imports onnxruntime."""

__all__ = ["__version__"]

__version__ = "0.1.0"
