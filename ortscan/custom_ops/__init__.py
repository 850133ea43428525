"""The Python custom op, hardened: what it runs, how it survives what it runs, and how a session comes to know it.

Nothing here is imported, and onnxruntime-extensions is not needed, until a model calls the op or ``ortscan.register`` is called.
Which nodes become calls, and how a model makes one, is in ``rewrites.python_ops``.
"""

__all__: list[str] = []
