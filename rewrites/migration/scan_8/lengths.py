"""The lengths of the rows of an opset-8 Scan: which steps of which row are real.

onnxruntime refuses lengths outside 1..T at run time. A length of 0, which the operator's text allows, is let through here; other
lengths fail in a Gather. Lengths that are known to be full are none.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.builder import Builder
from rewrites.errors import MalformedLoop
from rewrites.loops import ScanView
from rewrites.spelling import count_up, gather, shape_of, unsqueeze, where
from rewrites.values import const_array, dim_of

__all__ = ["Lengths", "lengths_of", "reversed_rows", "sizes_of"]

_REVERSE_SEQUENCE_SINCE = 10


@dataclass(frozen=True)
class Lengths:
    """``value``: the length of each row, int64 of shape [B]. ``live``: which steps are real, bool of shape [B, T]."""

    value: ir.Value
    live: ir.Value


def sizes_of(loop: ScanView, b: Builder) -> tuple[ir.Value, ir.Value]:
    """Give the number of rows and the number of steps, as one-element int64 tensors, constant where some scan input tells."""
    found = []
    for axis in (0, 1):
        tell = next((scan.outer for scan in loop.scan_inputs if isinstance(dim_of(scan.outer, axis), int)), None)
        found.append(shape_of(b, tell or loop.scan_inputs[0].outer, axis))
    return found[0], found[1]


def lengths_of(loop: ScanView, b: Builder) -> Lengths | None:
    """Read ``sequence_lens``; None where there are none or all rows are known to be full.

    Raises MalformedLoop for constant lengths with which the Scan fails whatever it is fed.
    """
    given = loop.sequence_lens
    if given is None:
        return None
    rows, steps = sizes_of(loop, b)
    known_rows, known_steps, known = const_array(rows), const_array(steps), const_array(given)
    if known is not None:
        _check(loop, known, known_rows, known_steps)
        if known_steps is not None and (known == known_steps).all():
            return None
    flat = given if dim_of(given, 0) is not None and dim_of(given, 0) == dim_of(loop.scan_inputs[0].outer, 0) else None
    if flat is None or flat.shape is None or len(flat.shape) != 1:
        flat = b.op("Reshape", given, rows)
    if known is None or known_steps is None:
        flat = _checked(b, flat, steps)
    live = b.op("Less", unsqueeze(b, count_up(b, steps), [0]), unsqueeze(b, flat, [1]))
    return Lengths(flat, live)


def _check(loop: ScanView, lengths: np.ndarray, rows: np.ndarray | None, steps: np.ndarray | None) -> None:
    label = loop.node.name or loop.node.outputs[0].name
    if rows is not None and lengths.size != rows.item():
        raise MalformedLoop(f"Scan '{label}': sequence_lens holds {lengths.size} lengths, but there are {rows.item()} rows.")
    most = lengths.max(initial=0) if steps is None else steps.item()
    if (lengths < 0).any() or (lengths > most).any():
        raise MalformedLoop(f"Scan '{label}': sequence_lens holds {lengths.ravel().tolist()}, but must be in 0..{most}.")


def _checked(b: Builder, lengths: ir.Value, steps: ir.Value) -> ir.Value:
    """Give ``lengths``, by way of a Gather that fails where one is not in 0..T."""
    after = b.op("Add", steps, b.const([1]))
    below = b.op("Less", lengths, b.const([0]))
    return gather(b, count_up(b, after), where(b, below, after, lengths), 0)


def reversed_rows(b: Builder, x: ir.Value, lengths: Lengths, rows: ir.Value, steps: ir.Value) -> ir.Value:
    """Give ``x`` of shape [B, T, ...] with the real steps of each row in opposite order; the others stay."""
    if b.opset >= _REVERSE_SEQUENCE_SINCE:
        return b.op("ReverseSequence", x, lengths.value, batch_axis=0, time_axis=1)
    time = unsqueeze(b, count_up(b, steps), [0])
    mirrored = b.op("Sub", b.op("Sub", unsqueeze(b, lengths.value, [1]), b.const([1])), time)
    place = b.op("Add", where(b, lengths.live, mirrored, time), b.op("Mul", unsqueeze(b, count_up(b, rows), [1]), steps))
    if x.dtype != ir.DataType.STRING:
        tail = b.op("Slice", b.op("Shape", x), axes=[0], starts=[2], ends=[2**63 - 1])
        table = b.op("Reshape", x, b.op("Concat", b.op("Mul", rows, steps), tail, axis=0))
        return gather(b, table, place, 0)
    shape = b.op("Shape", x)
    tail = b.op("Concat", b.const([1]), b.op("Slice", shape, axes=[0], starts=[2], ends=[2**63 - 1]), axis=0)
    inner = b.op("ReduceProd", tail, axes=[0], keepdims=1)
    first = unsqueeze(b, b.op("Mul", place, inner), [2])
    element = b.op("Add", first, unsqueeze(b, count_up(b, inner), [0, 1]))
    return b.op("Reshape", gather(b, b.op("Reshape", x, b.const([-1])), element, 0), shape)
