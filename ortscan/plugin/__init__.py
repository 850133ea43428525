"""Run loops of unmodified models natively in plain sessions: an execution provider in the native library asks a planner.

onnxruntime asks the provider (``native/c/provider*.c``) which nodes of a model it runs. For each Scan or Loop, the provider
writes a model with only that node and asks this package for a plan. It accepts the node if a plan fits. All other nodes run
on onnxruntime.
"""

__all__: list[str] = []
