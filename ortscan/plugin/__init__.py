"""Run loops of unmodified models natively in plain sessions.

The loops run in an execution provider, which is part of ortscan's native library (``native/c/provider*.c``). When onnxruntime
creates a session, it asks the provider which nodes of the model it can run. For each Scan or Loop, the provider writes a model with
only that node, and asks this package for a plan. A plan is the compiled form of a loop. The provider accepts the node if there is a
plan. onnxruntime runs all other nodes.
"""

__all__: list[str] = []
