"""A vmap for ONNX: one table from operators to batching rules.

``batch(call)`` emits the operator of ``call`` for all steps at once. Batched operands have an extra axis 0, and so have the
results, unless they are loop-invariant (like the Shape of a batched value). The same table is used for the steps of a loop whose
nodes are moved out, for the batch axis of a Scan-8, and for the steps of nested loops.
"""

from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.emission import Emission
from rewrites.batching.table import batch, has_rule

__all__ = ["Call", "Emission", "Operand", "Result", "batch", "has_rule"]
