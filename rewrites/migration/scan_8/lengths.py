"""Handles the lengths of the rows of an opset-8 Scan (its input ``sequence_lens``).

A step of a row is *real* if the row has not ended before it. All other steps of the row are padding. B is the number of rows, and T
is the number of steps of the scan inputs.

onnxruntime accepts lengths from 1 to T. The new model also accepts 0, as the definition of the operator does. For any other length,
a Gather in the new model fails. If the lengths are constant and all equal T, the new model needs no lengths.

Steps after the end of the longest row do not run. On targets without loops they do run, because such targets need an unrolled loop,
and the number of unrolled steps cannot depend on data.

Works around ORT-SCAN-8-LENGTH-0.
"""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.base.errors import MalformedLoop
from rewrites.graph.builder import Builder
from rewrites.graph.dims import refined, with_size
from rewrites.graph.values import const_array, dim_of, rank_of, static_dims
from rewrites.loops import ScanView, State
from rewrites.ops.versions import count_up, gather, reduce, shape_of, unsqueeze, where
from rewrites.ops.versions.emit import checked_lengths

__all__ = [
    "Lengths",
    "ScanSizes",
    "cut_to_longest_row",
    "lengths_of",
    "padded_to_all_steps",
    "reverse_real_steps",
    "select_final_state",
    "with_unit_axes",
]


@dataclass(frozen=True)
class Lengths:
    """The lengths of the rows, and values that are computed from them.

    Args:
        value: The length of each row, int64 [B] for B rows.
        live: A mask that is True in the steps of each row before its end, bool [B, T] for T steps.
        step_numbers: The numbers of the steps: 0, 1, … T - 1.
        steps_to_run: The number of steps to run, at least 1, as an int64 tensor of one element. None if all T steps run.
    """

    value: ir.Value
    live: ir.Value
    step_numbers: ir.Value
    steps_to_run: ir.Value | None


@dataclass(frozen=True)
class ScanSizes:
    """The number of rows and the number of steps, each as an int64 tensor of one element.

    If the shape of a scan input declares a number, the tensor is a constant.
    """

    rows: ir.Value
    steps: ir.Value

    @classmethod
    def of(cls, loop: ScanView, b: Builder) -> "ScanSizes":
        """Return the numbers of rows and steps of ``loop``."""
        sizes = []
        for axis in (0, 1):
            declared = next((scan.outer for scan in loop.scan_inputs if isinstance(dim_of(scan.outer, axis), int)), None)
            sizes.append(shape_of(b, declared or loop.scan_inputs[0].outer, axis))
        return cls(*sizes)


def lengths_of(loop: ScanView, sizes: ScanSizes, b: Builder, all_steps: bool) -> Lengths | None:
    """Return the lengths of the rows of ``loop``, or None if each row is known to have all steps.

    Args:
        all_steps: True if the new Scan must run all steps even if all rows are shorter. Ignored if the lengths are constant.

    Raises:
        MalformedLoop: The lengths are constant and invalid.
    """
    declared = loop.sequence_lens
    if declared is None:
        return None
    known_rows, known_steps, known = const_array(sizes.rows), const_array(sizes.steps), const_array(declared)
    if known is not None:
        _check_constant_lengths(loop, known, known_rows, known_steps)
        if known_steps is not None and (known == known_steps).all():
            return None
    plain = known_rows is not None and static_dims(declared) == (known_rows.item(),)
    flat = declared if plain else b.op("Reshape", declared, sizes.rows)
    if known is None or known_steps is None:
        flat = checked_lengths(b, flat, sizes.steps)
    time = count_up(b, sizes.steps)
    live = b.op("Less", unsqueeze(b, time, [0]), unsqueeze(b, flat, [1]))
    live.shape = refined(live.shape, ir.Shape([dim_of(loop.scan_inputs[0].outer, axis) for axis in (0, 1)]))
    steps_to_run = None if all_steps and known is None else _steps_to_run(loop, b, flat, known)
    return Lengths(flat, live, time, steps_to_run)


def _steps_to_run(loop: ScanView, b: Builder, lengths: ir.Value, known: np.ndarray | None) -> ir.Value | None:
    values = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
    if any(value.dtype in (None, ir.DataType.STRING) for value in values):
        return None
    if known is not None:
        return b.const([max(1, int(known.max(initial=1)))])
    longest = reduce(b, "ReduceMax", lengths, [0], keepdims=True)
    return where(b, b.op("Less", longest, b.const([1])), b.const([1]), longest)


def cut_to_longest_row(b: Builder, x: ir.Value, lengths: Lengths) -> ir.Value:
    """Return ``x`` [rows, steps, ...] without the steps after the end of the longest row."""
    if lengths.steps_to_run is None:
        return x
    if b.opset < since.SLICE_INPUTS:
        return gather(b, x, count_up(b, lengths.steps_to_run), 1)
    cut = b.op("Slice", x, b.const([0]), lengths.steps_to_run, b.const([1]))
    cut.shape = with_size(x.shape, 1, None)  # onnx infers no size for a Slice with an unknown end
    return cut


def select_final_state(b: Builder, final: ir.Value, state: State, lengths: Lengths) -> ir.Value:
    """Return the final state of each row: ``final``, or the initial state for a row of length 0.

    ``final``: the state that the new Scan returns.
    """
    has_steps = b.op("Less", b.const([0]), lengths.value)
    return where(b, with_unit_axes(b, has_steps, 1, final, rank_of(state.inner)), final, state.initial)


def with_unit_axes(b: Builder, flags: ir.Value, rank: int, x: ir.Value, inner_rank: int | None) -> ir.Value:
    """Append axes of size 1 to the mask ``flags``, so that it has as many axes as ``x``.

    Args:
        rank: The rank of ``flags``.
        inner_rank: The number of axes to append, or None if it is unknown. The new model then computes it from the rank of ``x``.
    """
    if inner_rank is not None:
        return unsqueeze(b, flags, range(rank, rank + inner_rank))
    missing = b.op("Sub", b.op("Shape", b.op("Shape", x)), b.const([rank]))
    ones = b.op("ConstantOfShape", missing, value=ir.tensor(np.ones(1, np.int64)))
    return b.op("Reshape", flags, b.op("Concat", b.op("Shape", flags), ones, axis=0))


def padded_to_all_steps(b: Builder, y: ir.Value, lengths: Lengths, inner: ir.Value, kind: ir.DataType) -> ir.Value:
    """Extend the stacked results ``y`` to all T steps, and replace the results of padding steps by zeros.

    Args:
        y: The stacked results of the steps that ran.
        inner: The body value that is stacked in ``y``.
        kind: The element type of ``y``. For strings, the empty string replaces the results of padding steps.
    """
    if lengths.steps_to_run is not None:
        last = b.op("Sub", lengths.steps_to_run, b.const([1]))
        y = gather(b, y, where(b, b.op("Less", lengths.step_numbers, lengths.steps_to_run), lengths.step_numbers, last), 1)
    live = with_unit_axes(b, lengths.live, 2, y, rank_of(inner))
    if kind == ir.DataType.BOOL:
        return b.op("And", live, y)
    text = kind == ir.DataType.STRING
    return where(b, live, y, b.const(np.array("", object) if text else np.array(0, kind.numpy())))


def _check_constant_lengths(loop: ScanView, lengths: np.ndarray, rows: np.ndarray | None, steps: np.ndarray | None) -> None:
    label = loop.node.name or loop.node.outputs[0].name
    if rows is not None and lengths.size != rows.item():
        raise MalformedLoop(f"Scan '{label}': sequence_lens holds {lengths.size} lengths, but there are {rows.item()} rows.")
    most = lengths.max(initial=0) if steps is None else steps.item()
    if (lengths < 0).any() or (lengths > most).any():
        raise MalformedLoop(f"Scan '{label}': sequence_lens holds {lengths.ravel().tolist()}, but must be in 0..{most}.")


def reverse_real_steps(b: Builder, x: ir.Value, lengths: Lengths, sizes: ScanSizes) -> ir.Value:
    """Return ``x`` [rows, steps, ...] with the steps of each row before its end in reverse order.

    The steps after the end (padding) stay in place.
    """
    if b.opset >= since.REVERSE_SEQUENCE:
        return b.op("ReverseSequence", x, lengths.value, batch_axis=0, time_axis=1)
    time = unsqueeze(b, lengths.step_numbers, [0])
    mirrored = b.op("Sub", b.op("Sub", unsqueeze(b, lengths.value, [1]), b.const([1])), time)
    position = b.op(
        "Add", where(b, lengths.live, mirrored, time), b.op("Mul", unsqueeze(b, count_up(b, sizes.rows), [1]), sizes.steps)
    )
    if x.dtype != ir.DataType.STRING:
        tail = b.op("Slice", b.op("Shape", x), axes=[0], starts=[2], ends=[2**63 - 1])
        table = b.op("Reshape", x, b.op("Concat", b.op("Mul", sizes.rows, sizes.steps), tail, axis=0))
        return gather(b, table, position, 0)
    shape = b.op("Shape", x)
    tail = b.op("Concat", b.const([1]), b.op("Slice", shape, axes=[0], starts=[2], ends=[2**63 - 1]), axis=0)
    inner = b.op("ReduceProd", tail, axes=[0], keepdims=1)
    first = unsqueeze(b, b.op("Mul", position, inner), [2])
    element = b.op("Add", first, unsqueeze(b, count_up(b, inner), [0, 1]))
    return b.op("Reshape", gather(b, b.op("Reshape", x, b.const([-1])), element, 0), shape)
