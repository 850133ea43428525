"""Run loops of unmodified models natively in plain sessions.

This is the work of an execution provider in ortscan's native library.
When onnxruntime creates a session, it asks the provider (``native/c/provider*.c``) which nodes of the model it can run. For each
Scan or Loop, the provider writes a model with only that node, and asks this package for a plan. A plan is the compiled form of a
loop. The provider accepts the node if there is a plan. onnxruntime runs all other nodes.
"""

__all__: list[str] = []
