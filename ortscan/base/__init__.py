"""Tools for all other packages: files, locks, subprocesses, and walks over protobuf models.

No module here imports onnxruntime.
"""

__all__ = ["__version__"]

__version__ = "1.0.0"
