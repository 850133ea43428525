"""A vmap for ONNX: one table from operators to batching rules.

``batch(call)`` emits the operator of ``call`` for all steps at once: batched operands carry an extra axis 0, and so do the results,
but for those that are loop-invariant (the Shape of a batched value).
The same table serves the time axis (work that leaves a loop), the batch axis of a Scan-8, and the axes of other loops.
"""

from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.emission import Emission
from rewrites.batching.table import batch, has_rule

__all__ = ["Call", "Emission", "Operand", "Result", "batch", "has_rule"]
