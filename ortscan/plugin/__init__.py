"""Run loops of unmodified models natively in plain sessions: an execution provider in the library of loop plans, and its
planner.

onnxruntime asks the provider (``native/c/provider*.c``) which nodes of a model it runs. For each Scan or Loop, the provider
writes a model with only that node and requests a plan for it here. It accepts the node if there is a plan that fits. All other
nodes run on onnxruntime.
"""

__all__: list[str] = []
