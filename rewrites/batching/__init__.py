"""Runs operators for all steps of a loop at once, like JAX's ``vmap``, by one rule for each operator.

``batch(call)`` emits the operator of ``call`` for all steps at once. A batched operand or result has the steps as an extra axis 0.
A result may also be loop-invariant, like the Shape of a batched value.

The rules serve three purposes: to move nodes out of a loop, to run the batch axis of a Scan-8, and to run a nested loop for all
steps of the outer loop.
"""

from rewrites.batching.call import Call, Operand, Result
from rewrites.batching.emission import Emission
from rewrites.batching.table import batch, has_rule

__all__ = ["Call", "Emission", "Operand", "Result", "batch", "has_rule"]
