"""Refuses loops over element types that Slice, Gather or Concat do not support in an opset, such as float8 or types of 4 bits.

For such a type, a state cannot be stacked, and a loop-invariant value cannot be repeated. A sequence cannot be reversed, and must
have the steps as axis 0. Sequences that rules neither slice nor join are allowed.
"""

import functools
from collections.abc import Iterable

import onnx
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.base import since
from rewrites.base.not_applicable import NotApplicable
from rewrites.loops import Loop, ScanView

__all__ = ["unscanned", "unsliced", "unsliced_among"]

_ON_SEQUENCES = ("Concat", "Expand", "Gather", "Slice")
_NO_NUMBERS = (ir.DataType.STRING, ir.DataType.UNDEFINED)
_PACKED = frozenset(kind for kind in ir.DataType if kind not in _NO_NUMBERS and kind.bitwidth < 8)


def unsliced_among(values: Iterable[ir.Value], opset: int) -> NotApplicable | None:
    """Return a refusal if ``opset`` cannot slice or join one of ``values``, else None."""
    for value in values:
        if value.dtype is not None and not _is_sliced(value.dtype, opset):
            return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {value.dtype.name.lower()}")
    return None


def unscanned(value: ir.Value) -> NotApplicable | None:
    """Return a refusal if several elements of ``value`` share a byte, because no loop can scan or stack them."""
    if value.dtype is None or value.dtype not in _PACKED:
        return None
    return NotApplicable("ELEMENT-TYPE", f"'{value.name}' holds {value.dtype.name.lower()}")


@functools.cache
def _is_sliced(kind: ir.DataType, opset: int) -> bool:
    schemas = [onnx.defs.get_schema(op_type, max(opset, since.EXPAND)) for op_type in _ON_SEQUENCES]
    said = f"tensor({kind.name.lower()})"
    return all(said in constraint.allowed_type_strs for schema in schemas for constraint in schema.type_constraints[:1])


def unsliced(loop: Loop, opset: int) -> NotApplicable | None:
    """Return a refusal if a rewrite of ``loop`` would have to slice or join elements of a type that does not support it."""
    values = [state.inner for state in loop.states]
    if isinstance(loop, ScanView):
        values += [scan.inner for scan in loop.scan_inputs if scan.axis or scan.reverse]
    moving = varying_values(loop.body, loop.body.inputs)
    values += [output.inner for output in loop.scan_outputs if output.axis or output.reverse or output.inner not in moving]
    return unsliced_among(values, opset)
