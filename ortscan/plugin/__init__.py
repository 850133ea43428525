"""Run loops of unmodified models natively in plain sessions, with an execution provider in the native library and a planner here.

onnxruntime asks the provider (``native/c/provider*.c``) which nodes of a model it runs. For each Scan or Loop, the provider
writes a model with only that node and requests a plan for this model here. It accepts the node if a plan fits. All other nodes run
on onnxruntime.
"""

__all__: list[str] = []
