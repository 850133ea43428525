"""The Python custom op, an operator that runs nodes in Python.

An exception in the op does not crash the process. Sessions of ortscan register the op themselves.

This package and onnxruntime-extensions are imported only when a model calls the op, or when ``ortscan.register`` is called.
``rewrites.python_ops`` decides which nodes become calls.
"""

__all__: list[str] = []
