"""The Python custom op: it runs calls without crashing the process, and sessions register it.

Nothing here is imported, and onnxruntime-extensions is not needed, until a model calls the op or ``ortscan.register`` is called.
``rewrites.python_ops`` decides which nodes become calls.
"""

__all__: list[str] = []
