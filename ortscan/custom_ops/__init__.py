"""The Python custom op. It runs calls without crashing the process, and sessions register it.

Nothing here is imported until a model calls the op or ``ortscan.register`` is called, and onnxruntime-extensions is not needed
before. ``rewrites.python_ops`` decides which nodes become calls.
"""

__all__: list[str] = []
