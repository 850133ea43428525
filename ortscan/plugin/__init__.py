"""Loops of unmodified models run natively in plain sessions: an execution provider in the library of loop plans, and its planner.

onnxruntime asks the provider (``native/c/provider*.c``) which nodes of a model it takes. For each Scan it writes a model of that
node alone, has it planned here, and takes it where there is a plan that fits. What it does not take runs as ever.
"""

__all__: list[str] = []
