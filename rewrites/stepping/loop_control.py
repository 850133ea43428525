"""The number of steps of a Loop, and the condition that another step follows."""

import functools
from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.values import static_dims
from rewrites.ops.versions.emit import reshape, shape_of, squeeze, where
from rewrites.stepping.step_roles import StepRoles

__all__ = ["next_condition", "step_limit"]


def step_limit(b: Builder, roles: StepRoles, inputs: Mapping[str, ir.Value]) -> ir.Value:
    """Return the most steps of a Loop, an int64 number.

    It is the smallest of the lengths of the scanned inputs and the limit of ``roles``. ``inputs``: the inputs of the whole model by
    name.
    """
    limit = roles.limit
    counts = [b.const(np.array(limit, np.int64))] if isinstance(limit, int) else [inputs[limit]] if limit else []
    counts += [squeeze(b, shape_of(b, inputs[name], axis), [0]) for name, axis in roles.scan.items()]
    return functools.reduce(lambda least, count: where(b, b.op("Less", least, count), least, count), counts)


def next_condition(b: Builder, before: ir.Value, stop: ir.Value | None) -> ir.Value:
    """Return the condition that another step follows.

    ``before``: the condition that the body reads. ``stop``: the bool output that ends the loop if it is all true, or None.
    """
    if stop is None:
        return b.op("Identity", before)
    condition = b.op("Not", stop)
    sizes = static_dims(stop)
    if sizes is None or any(size != 1 for size in sizes):
        count = b.op("ReduceSum", b.op("Cast", condition, to=int(ir.DataType.INT32)), keepdims=0)
        return b.op("Cast", count, to=int(ir.DataType.BOOL))
    return reshape(b, condition, []) if sizes else condition
