"""Replaces a loop node by a node with changed parts and the same body."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.graph.marks import EMPTY_SIZES, carry
from rewrites.graph.names import Names
from rewrites.graph.replace import take_over
from rewrites.loops.parts import ScanInput, ScanOutput, State
from rewrites.loops.scan_view import ScanView
from rewrites.loops.view import Loop

__all__ = ["detached_copy", "make_loop", "make_scan", "rebuild", "replace_node"]


def rebuild(
    loop: Loop,
    names: Names,
    *,
    states: Sequence[State] | None = None,
    scan_inputs: Sequence[ScanInput] | None = None,
    scan_outputs: Sequence[ScanOutput] | None = None,
) -> ir.Node:
    """Replace the node of ``loop`` by a node with the given parts, and return the new node.

    If an argument is None, the parts of ``loop`` stay. If a part has a result of the old node (``final`` or ``outer``), a result of
    the new node replaces this result and takes over its name. For a part without a result, the new node gets an additional result.
    Nothing may read the body inputs and the results of parts that are dropped.
    """
    old, body = loop.node, loop.body
    states = loop.states if states is None else states
    scan_outputs = loop.scan_outputs if scan_outputs is None else scan_outputs
    results = [*(state.final for state in states), *(output.outer for output in scan_outputs)]
    if isinstance(loop, ScanView):
        scan_inputs = loop.scan_inputs if scan_inputs is None else scan_inputs
        inner_inputs = [*(state.inner for state in states), *(scan.inner for scan in scan_inputs)]
        inner_outputs = [*(state.next for state in states), *(output.inner for output in scan_outputs)]
        inputs = [*(state.initial for state in states), *(scan.outer for scan in scan_inputs)]
        operands: list[ir.Value | None] = [loop.sequence_lens, *inputs] if loop.batched else [*inputs]
        attributes = _scan_attributes(loop.batched, scan_inputs, scan_outputs)
    else:
        inner_inputs = [loop.iteration, loop.condition_in, *(state.inner for state in states)]
        inner_outputs = [loop.condition_out, *(state.next for state in states), *(output.inner for output in scan_outputs)]
        operands = [loop.limit, loop.condition, *(state.initial for state in states)]
        attributes = []
    del old.attributes["body"]
    body.inputs[:] = inner_inputs
    body.outputs[:] = inner_outputs
    node = _replace_with_new_results(old, names, operands, [ir.AttrGraph("body", body), *attributes], results, inner_outputs)
    if EMPTY_SIZES.on(node):
        EMPTY_SIZES.put(node, [output.empty_sizes for output in scan_outputs])
    return node


def make_scan(
    names: Names,
    body: ir.Graph,
    states: Sequence[State],
    scan_inputs: Sequence[ScanInput],
    scan_outputs: Sequence[ScanOutput],
    hint: str,
) -> ir.Node:
    """Return a detached Scan of opset 9 or later with the given parts.

    The inputs and outputs of ``body`` become those of the parts, in order. ``hint``: a name from which the names of the node and
    its results are derived.
    """
    body.inputs[:] = [*(state.inner for state in states), *(scan.inner for scan in scan_inputs)]
    inner = [*(state.next for state in states), *(output.inner for output in scan_outputs)]
    body.outputs[:] = inner
    outputs = [ir.Value(name=names.fresh(f"{hint}_{value.name}"), type=value.type) for value in inner]
    for state, value in zip(states, outputs, strict=False):
        value.shape = state.initial.shape
    operands = [*(state.initial for state in states), *(scan.outer for scan in scan_inputs)]
    attributes = [ir.AttrGraph("body", body), *_scan_attributes(False, scan_inputs, scan_outputs)]
    return ir.Node("", "Scan", operands, attributes, outputs=outputs, name=names.fresh(hint))


def make_loop(
    names: Names,
    body: ir.Graph,
    limit: ir.Value,
    states: Sequence[State],
    scan_outputs: Sequence[ScanOutput],
    control: tuple[ir.Value, ir.Value, ir.Value],
    hint: str,
) -> ir.Node:
    """Return a detached Loop of at most ``limit`` steps with the given parts.

    The inputs and outputs of ``body`` become those of the parts, in order. ``control``: the step number and the condition that the
    body reads, and the condition that it computes. ``hint``: as for ``make_scan``.
    """
    iteration, condition_in, condition_out = control
    inner = [*(state.next for state in states), *(output.inner for output in scan_outputs)]
    body.inputs[:] = [iteration, condition_in, *(state.inner for state in states)]
    body.outputs[:] = [condition_out, *inner]
    outputs = [ir.Value(name=names.fresh(f"{hint}_{value.name}"), type=value.type) for value in inner]
    operands = [limit, None, *(state.initial for state in states)]
    return ir.Node("", "Loop", operands, [ir.AttrGraph("body", body)], outputs=outputs, name=names.fresh(hint))


def detached_copy(loop: ScanView, names: Names) -> ir.Node:
    """Return a detached copy of the node of ``loop``, with new results.

    The body moves to the copy, so the old node no longer has a body.
    """
    old = loop.node
    del old.attributes["body"]
    outputs = [ScanOutput(output.inner, None, output.axis, output.reverse) for output in loop.scan_outputs]
    scan = make_scan(names, loop.body, loop.states, loop.scan_inputs, outputs, old.name or "scan")
    for mine, theirs in zip(scan.outputs, old.outputs, strict=True):
        mine.type, mine.shape = theirs.type or mine.type, theirs.shape
    return scan


def _replace_with_new_results(
    old: ir.Node,
    names: Names,
    operands: Sequence[ir.Value | None],
    attributes: Sequence[ir.Attr],
    results: Sequence[ir.Value | None],
    body_outputs: Sequence[ir.Value],
) -> ir.Node:
    """Replace ``old`` by a node with new operands and attributes, and return the new node.

    Args:
        old: The loop to replace.
        names: Makes new names.
        operands: The inputs of the new node.
        attributes: The attributes of the new node.
        results: For each result of the new node, the result of ``old`` that it replaces, or None.
        body_outputs: The outputs of the body. The last ``len(results)`` outputs correspond to ``results``, in order.
    """
    offset = len(body_outputs) - len(results)
    outputs = []
    for result, inner_value in zip(results, body_outputs[offset:], strict=True):
        hint = result.name if result is not None else inner_value.name
        outputs.append(ir.Value(name=names.fresh(hint or "result"), type=inner_value.type))
    node = ir.Node(old.domain, old.op_type, operands, attributes, outputs=outputs, name=old.name, version=old.version)
    replace_node(
        old, node, [(result, value) for result, value in zip(results, node.outputs, strict=True) if result is not None], names
    )
    return node


def replace_node(old: ir.Node, node: ir.Node, results: Sequence[tuple[ir.Value, ir.Value]], names: Names) -> None:
    """Replace the node ``old`` by ``node``, which gets the metadata and marks of ``old``.

    ``results``: pairs of a result of ``old`` and the value that replaces this result.
    """
    node.doc_string = old.doc_string
    node.metadata_props.update(old.metadata_props)
    carry(old, node)
    assert old.graph is not None
    old.graph.insert_before(old, node)
    for result, value in results:
        take_over(result, value, names)
    old.graph.remove(old, safe=True)


def _scan_attributes(batched: bool, scan_inputs: Sequence[ScanInput], scan_outputs: Sequence[ScanOutput]) -> list[ir.Attr]:
    """Return the attributes of a Scan with these parts. ``batched``: True for opset 8."""
    attributes: list[ir.Attr] = [ir.AttrInt64("num_scan_inputs", len(scan_inputs))]
    lists = {"directions": [int(scan.reverse) for scan in scan_inputs]}
    if not batched:
        lists = {
            "scan_input_axes": [scan.axis for scan in scan_inputs],
            "scan_input_directions": [int(scan.reverse) for scan in scan_inputs],
            "scan_output_axes": [output.axis for output in scan_outputs],
            "scan_output_directions": [int(output.reverse) for output in scan_outputs],
        }
    return attributes + [ir.AttrInt64s(name, values) for name, values in lists.items() if any(values)]
