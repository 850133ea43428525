"""The view of a Scan, for all versions of the operator.

The versions are 8 (batched, with sequence_lens), 9, 11, 16, 19, 21, 23, 24 and 25. Sources: the specifications of Scan-8 to
Scan-25. The checks agree with the shape inference in onnx/defs/controlflow.

Works around ORT-SCAN-NO-STEPS.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.plain_text import quoted
from rewrites.graph.values import dim_of, rank_of
from rewrites.loops.parts import (
    ScanInput,
    ScanOutput,
    State,
    body_of,
    check_body_values,
    check_element_types,
    int_list_attribute,
    malformed,
)

__all__ = ["ScanView", "refuse_contradictions"]


@dataclass(frozen=True)
class ScanView:
    """The parts of a Scan node.

    ``batched``: True for a Scan of opset 8, whose outer tensors have the batch as axis 0 and the steps as axis 1.
    ``sequence_lens``: the optional input of a Scan of opset 8 with the length of each row.
    """

    node: ir.Node
    body: ir.Graph
    states: tuple[State, ...]
    scan_inputs: tuple[ScanInput, ...]
    scan_outputs: tuple[ScanOutput, ...]
    batched: bool
    sequence_lens: ir.Value | None

    kind = "Scan"

    @property
    def steps(self) -> int | str | None:
        """Return the trip count: a number, the name of an unknown size, or None."""
        dims = [dim_of(scan.outer, scan.axis) for scan in self.scan_inputs]
        numbers = [dim for dim in dims if isinstance(dim, int)]
        return numbers[0] if numbers else next((dim for dim in dims if dim), None)

    @property
    def always_runs(self) -> bool:
        """Return True if the body runs at least once, which is the case from opset 9 on.

        onnxruntime refuses to run such a Scan without steps.
        """
        return not self.batched

    @property
    def body_inputs(self) -> list[ir.Value]:
        """Return the body inputs whose values change between steps. For a Scan, these are all body inputs."""
        return list(self.body.inputs)

    @classmethod
    def of(cls, node: ir.Node, opset: int) -> "ScanView":
        """Return the view of a Scan node.

        If the node is invalid, raise MalformedLoop, which names the node and the field.
        """
        body = body_of(node)
        batched = opset < 9
        first = 1 if batched else 0
        operands = node.inputs[first:]
        if batched and not node.inputs:
            raise malformed(node, "inputs", "an opset-8 Scan needs sequence_lens (or an empty name) first")
        scans = _count_of_scan_inputs(node, len(operands))
        count = len(operands) - scans
        outputs = len(node.outputs) - count
        if any(value is None for value in operands):
            raise malformed(node, "inputs", "state variables and scan inputs cannot be omitted")
        if len(body.inputs) != len(operands):
            raise malformed(node, "body", f"has {len(body.inputs)} inputs, but the node passes {len(operands)} values to it")
        if len(body.outputs) != len(node.outputs) or outputs < 0:
            raise malformed(node, "body", f"has {len(body.outputs)} outputs, but the node has {len(node.outputs)}")
        check_body_values(node, body)
        values = [value for value in operands if value is not None]
        if batched:
            axes, reverse = [1] * scans, int_list_attribute(node, "directions", scans, "scan inputs", (0, 1))
            out_axes, out_reverse = [1] * outputs, [0] * outputs
        else:
            ranks = [rank_of(value) for value in values[count:]]
            axes = int_list_attribute(node, "scan_input_axes", scans, "scan inputs", ranks=ranks)
            reverse = int_list_attribute(node, "scan_input_directions", scans, "scan inputs", (0, 1))
            inner_ranks = [rank_of(value) for value in body.outputs[count:]]
            out_ranks = [None if rank is None else rank + 1 for rank in inner_ranks]
            out_axes = int_list_attribute(node, "scan_output_axes", outputs, "scan outputs", ranks=out_ranks)
            out_reverse = int_list_attribute(node, "scan_output_directions", outputs, "scan outputs", (0, 1))
        for value, inner in zip(values, body.inputs, strict=True):
            check_element_types(node, value, inner)
        states = tuple(State(values[i], body.inputs[i], body.outputs[i], node.outputs[i]) for i in range(count))
        for state in states:
            check_element_types(node, state.inner, state.next)
        return cls(
            node,
            body,
            states,
            tuple(ScanInput(values[count + i], body.inputs[count + i], axes[i], bool(reverse[i])) for i in range(scans)),
            tuple(
                ScanOutput(body.outputs[count + i], node.outputs[count + i], out_axes[i], bool(out_reverse[i]))
                for i in range(outputs)
            ),
            batched,
            node.inputs[0] if batched else None,
        )


def _count_of_scan_inputs(node: ir.Node, operands: int) -> int:
    """Return ``num_scan_inputs``. Raise MalformedLoop if it is missing or not in 1..``operands``."""
    attribute = node.attributes.get("num_scan_inputs")
    if attribute is not None and attribute.type != ir.AttributeType.INT:
        raise malformed(node, "num_scan_inputs", "is not an integer")
    count = None if attribute is None else attribute.as_int()
    if count is None or not 1 <= count <= operands:
        stated = "missing" if count is None else count
        raise malformed(node, "num_scan_inputs", f"is {stated}, but must be in 1..{operands} (the inputs)")
    return count


def refuse_contradictions(node: ir.Node, opset: int) -> None:
    """Raise MalformedLoop if sizes of the Scan ``node`` contradict each other.

    All scanned inputs must have the same length and the same batch size. The sizes that the body declares must agree with the
    inputs.
    """
    loop = ScanView.of(node, opset)
    batch_axes = 1 if loop.batched else 0
    states = [(state.initial, state.inner, [0][:batch_axes]) for state in loop.states]
    scanned = [(scan.outer, scan.inner, sorted({0, scan.axis}) if batch_axes else [scan.axis]) for scan in loop.scan_inputs]
    for outer, inner, dropped in (*states, *scanned):
        shape = _declared_shape(outer)
        if shape is not None and len(shape) <= max(dropped, default=-1):
            raise malformed(node, "inputs", f"include {quoted(outer.name)} of rank {len(shape)}, which has no axis {max(dropped)}")
        if shape is not None and inner.shape is not None:
            element = [dim for axis, dim in enumerate(shape) if axis not in dropped]
            if not _sizes_agree(element, inner.shape.dims):
                declared = f"{_format_shape(inner.shape.dims)} for {quoted(inner.name)}"
                raise malformed(node, "body", f"declares {declared}, but {quoted(outer.name)} gives {_format_shape(element)}")
    _refuse_different_sizes(node, [(scan.outer, scan.axis) for scan in loop.scan_inputs], "steps")
    if batch_axes:
        _refuse_different_sizes(node, [(outer, 0) for outer, _, _ in (*states, *scanned)], "rows")


def _refuse_different_sizes(node: ir.Node, axes: Sequence[tuple[ir.Value, int]], counted: str) -> None:
    """Raise MalformedLoop if the sizes of ``axes``, pairs (value, axis), are known to differ.

    ``counted``: what the sizes count, for the error message, such as "steps".
    """
    first: tuple[ir.Value, int] | None = None
    for value, axis in axes:
        shape = _declared_shape(value)
        dim = None if shape is None else shape[axis]
        if not isinstance(dim, int) or dim < 0:
            continue
        if first is None:
            first = value, dim
        elif first[1] != dim:
            known = f"{first[1]} in {quoted(first[0].name)}, but {dim} in {quoted(value.name)}"
            raise malformed(node, "inputs", f"differ in their {counted}: {known}")


def _declared_shape(value: ir.Value) -> Sequence[int | ir.SymbolicDimProtocol] | None:
    """Return the shape of ``value`` if it is an initializer or a graph input, else None.

    Only these declared shapes are certain, because onnxruntime refuses an input of another shape.
    """
    if value.is_initializer() and not value.is_graph_input() and value.const_value is not None:
        return value.const_value.shape.dims
    return value.shape.dims if value.is_graph_input() and value.shape is not None else None


def _sizes_agree(left: Sequence[object], right: Sequence[object]) -> bool:
    """Return True if two shapes have the same rank, and no known sizes that differ."""
    if len(left) != len(right):
        return False
    pairs = zip(left, right, strict=True)
    return not any(isinstance(a, int) and isinstance(b, int) and a != b and min(a, b) >= 0 for a, b in pairs)


def _format_shape(dims: Sequence[object]) -> str:
    return f"[{', '.join(str(dim) if isinstance(dim, int) else getattr(dim, 'value', None) or '?' for dim in dims)}]"
