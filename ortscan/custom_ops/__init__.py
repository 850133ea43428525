"""The Python custom op. It runs calls without crashing the process. Sessions register it.

This package and onnxruntime-extensions are imported only when a model calls the op, or when ``ortscan.register`` is called.
``rewrites.python_ops`` decides which nodes become calls.
"""

__all__: list[str] = []
