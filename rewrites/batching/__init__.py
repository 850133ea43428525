"""A vmap for ONNX: one table from operators to batching rules.

``batch(call)`` emits the operator of ``call`` for all steps at once: batched operands carry an extra axis 0, so do the results.
The same table serves the time axis (work that leaves a loop), the batch axis of a Scan-8, and the axes of other loops.
"""

from rewrites.batching.call import Call, Operand
from rewrites.batching.table import batch, has_rule

__all__ = ["Call", "Operand", "batch", "has_rule"]
