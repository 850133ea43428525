"""Writes a call of the Python operator, and a node that fails if the call fails.

    y, n = f (a, b)    ->    slots = ortscan.python.Call <spec> (Concat(flat a, flat b), …)
                             facts = Reshape (slot int64, [0])                 fails if f raised an exception
                             y = Reshape (slot float, facts[0:2])              and so on

Inputs and outputs of the call are slots, one for each element type (``wire``).

A Python operator must not raise an exception, because this crashes the process. A failed call therefore returns an int64 tensor of
rank 2. The Reshape that reads the int64 slot refuses this tensor, so the run ends with an error of onnxruntime in any session, and
returns no wrong numbers. The second size of the tensor is the number under which the exception is stored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from rewrites.graph.builder import Builder
from rewrites.graph.type_names import type_name
from rewrites.ops.versions import concat
from rewrites.python_ops.names import DOMAIN, GUARD, OPERATOR, VERSION
from rewrites.python_ops.wire import CARRIERS, META, SLOTS, CallSpec, Port, is_packed, meta_offsets, needs_shapes
from rewrites.rule import NotApplicable

__all__ = ["NEEDED_OPSET", "ports_of", "write_call"]

NEEDED_OPSET = 14
"""The first opset whose Reshape accepts sizes of 0."""


def ports_of(values: Sequence[ir.Value]) -> tuple[Port, ...] | NotApplicable:
    """Return the ports that describe ``values``, or a reason if a call cannot pass one of the values."""
    ports = []
    for value in values:
        kind = value.dtype.name.lower() if isinstance(value.type, ir.TensorType) and value.dtype is not None else None
        if kind not in CARRIERS:
            return NotApplicable("PYTHON-OP-TYPE", f"'{value.name}' is {type_name(value.type)}")
        if value.shape is None:
            return NotApplicable("PYTHON-OP-RANK", f"the number of dimensions of '{value.name}' is not known")
        ports.append(Port(kind, len(value.shape)))
    return tuple(ports)


def write_call(
    b: Builder,
    payload_format: str,
    payload: Mapping[str, Any],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    ports: tuple[Any, Any],
) -> list[ir.Value]:
    """Write a call, and return its results.

    Args:
        payload_format: The format of ``payload``: "graph" or "scan".
        payload: The model that the call runs, and its settings.
        inputs: The values that the call reads.
        outputs: The values that the results will replace. Each result gets the type and shape of the value that it replaces.
        ports: A pair: the ports of the inputs, and the ports of the outputs.
    """
    spec = CallSpec(payload_format, *ports, payload)
    slots = _slots(b, inputs, spec.inputs)
    hint = outputs[0].name or payload_format
    returned = b.ops(OPERATOR, slots, len(SLOTS), domain=DOMAIN, version=VERSION, hint=f"{hint}/python", spec=spec.text())
    for slot, value in zip(SLOTS, returned, strict=True):
        value.type = ir.TensorType(_dtype(slot))
    by_slot = dict(zip(SLOTS, returned, strict=True))
    facts = b.op("Reshape", by_slot[META], b.const([0]), hint=f"{hint}/facts")
    guard = facts.producer()
    assert guard is not None
    guard.name = b.names.fresh(GUARD)
    facts.type, facts.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([None])
    by_slot[META] = facts
    offsets = meta_offsets(spec.outputs)
    return [_result(b, spec.outputs, number, by_slot, facts, offsets[number], replaced) for number, replaced in enumerate(outputs)]


def _slots(b: Builder, inputs: Sequence[ir.Value], ports: Sequence[Port]) -> list[ir.Value]:
    carried = [_cast(b, value, port.slot) if port.slot != port.kind else value for value, port in zip(inputs, ports, strict=True)]
    packed = [is_packed(ports, port.slot, results=False) for port in ports]
    shapes = [b.op("Shape", value) for value, flatten, port in zip(carried, packed, ports, strict=True) if flatten and port.rank]
    slots = []
    for slot in SLOTS:
        in_slot = [(value, flatten) for value, flatten, port in zip(carried, packed, ports, strict=True) if port.slot == slot]
        parts = [b.op("Reshape", value, b.const([-1])) if flatten else value for value, flatten in in_slot]
        if slot == META and needs_shapes(ports):
            parts = [*shapes, *parts]
        if not parts:
            slots.append(b.const(np.zeros([0], _dtype(slot).numpy())))
        else:
            slots.append(parts[0] if len(parts) == 1 else concat(b, parts, 0))
    return slots


def _result(
    b: Builder,
    ports: Sequence[Port],
    number: int,
    by_slot: Mapping[str, ir.Value],
    facts: ir.Value,
    offset: int,
    replaced: ir.Value,
) -> ir.Value:
    port = ports[number]
    value = by_slot[port.slot]
    packed = is_packed(ports, port.slot, results=True)
    if packed:
        start, end = _cut(b, facts, offset, offset + 1), _cut(b, facts, offset + 1, offset + 2)
        value, offset = b.op("Slice", value, start, end, b.const([0])), offset + 2
    shape = (
        _cut(b, facts, offset, offset + port.rank) if port.rank else b.op("Slice", facts, b.const([0]), b.const([0]), b.const([0]))
    )
    shape.shape = ir.Shape([port.rank])
    result = b.op("Reshape", value, shape, allowzero=1 if packed else None, hint=replaced.name)
    if port.slot != port.kind:
        result.type, result.shape = ir.TensorType(_dtype(port.slot)), replaced.shape
        result = _cast(b, result, port.kind)
    result.type, result.shape = replaced.type, replaced.shape
    return result


def _cut(b: Builder, value: ir.Value, start: int, end: int) -> ir.Value:
    return b.op("Slice", value, b.const([start]), b.const([end]), b.const([0]))


def _cast(b: Builder, value: ir.Value, kind: str) -> ir.Value:
    return b.op("Cast", value, to=int(_dtype(kind)))


def _dtype(kind: str) -> ir.DataType:
    return ir.DataType[kind.upper()]
