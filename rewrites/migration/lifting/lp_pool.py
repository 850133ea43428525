"""The norm of LpPool and GlobalLpPool becomes an integer in version 2.

LpPool <p = 2.0> (x)  ->  LpPool <p = 2> (x)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["integer_norm"]


def integer_norm(step: Step) -> Sequence[ir.Value] | None:
    """Write ``p`` as integer; one that is none is refused."""
    if step.node.op_type == "LpPool" and not step.has("kernel_shape"):
        raise Unconvertible("it has no attribute 'kernel_shape'")
    p = step.float_("p")
    if p is None:
        return None
    if p != int(p):
        raise Unconvertible(f"its attribute 'p' is {p}, and has to be an integer")
    return step.like(p=int(p))
