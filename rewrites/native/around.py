"""Finds cheap operators before and after a loop that the loop's plan can include.

    u = Mul (z, x)  ys, ns = Scan (h, u) {...}  r = Div (ys, ns)    ->    one plan that reads h, z and x and returns r

Such an operator reads and writes stacks row by row. So the plan can compute a row in each step, while the row is in the cache. An
operator before the loop stays outside the plan if other nodes read its result. If nodes outside the plan read a result of the loop,
the plan still returns this result as a stack.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.postorder import postorder
from rewrites.graph.dims import equal
from rewrites.graph.values import const_array
from rewrites.loops import ScanInput, ScanOutput, ScanView, captured_values

__all__ = ["SurroundingNodes", "find_surrounding_nodes", "none_around", "unsqueezed_axes"]

_CHEAP = frozenset({"Abs", "Add", "Div", "Max", "Min", "Mul", "Neg", "Relu", "Sub", "Unsqueeze"})


@dataclass(frozen=True)
class SurroundingNodes:
    """The nodes before and after a loop that the loop's plan includes.

    Args:
        before: The nodes before the loop, in the order in which they run.
        after: The nodes after the loop, in the order in which they run.
        scans: The scan inputs of the plan. If a node of ``before`` reads the stack, ``ScanInput.inner`` is the stack itself,
            because the body has no value for the stack.
        stacked: The scan outputs of the plan. If a node of ``after`` computes the output, ``ScanOutput.inner`` is the output
            itself, because the body has no value for the output.
    """

    before: tuple[ir.Node, ...]
    after: tuple[ir.Node, ...]
    scans: tuple[ScanInput, ...]
    stacked: tuple[ScanOutput, ...]

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        """Return the nodes before and after the loop."""
        return (*self.before, *self.after)


def none_around(loop: ScanView) -> SurroundingNodes:
    """Return ``SurroundingNodes`` without nodes: the plan has the scan inputs and outputs of ``loop``."""
    return SurroundingNodes((), (), loop.scan_inputs, loop.scan_outputs)


def find_surrounding_nodes(loop: ScanView) -> SurroundingNodes:
    """Return the nodes before and after ``loop`` that the plan of ``loop`` can compute step by step."""
    if any(scan.axis for scan in loop.scan_inputs) or any(output.axis for output in loop.scan_outputs):
        return none_around(loop)
    before, scans = _find_nodes_before(loop)
    after, stacked = _find_nodes_after(loop, scans)
    surrounding = SurroundingNodes(tuple(before), tuple(after), tuple(scans), tuple(stacked))
    return surrounding if _reads_stacks_consistently(loop, surrounding) else none_around(loop)


def _reads_stacks_consistently(loop: ScanView, surrounding: SurroundingNodes) -> bool:
    """Return True if the plan reads each stack in one direction, and never as a whole."""
    row_stacks = [scan.outer for scan in surrounding.scans]
    results = {output.outer for output in loop.scan_outputs} | {node.outputs[0] for node in surrounding.nodes}
    read_as_whole = set(captured_values(loop.body))
    for node in surrounding.nodes:
        read_as_whole |= {value for value in node.inputs if value is not None} - set(_stacks_read_by_row(node) or ())
    some_in_both_directions = len({(scan.outer, scan.reverse) for scan in surrounding.scans}) != len(set(row_stacks))
    return not some_in_both_directions and not read_as_whole & {*row_stacks, *results}


def _find_nodes_before(loop: ScanView) -> tuple[list[ir.Node], list[ScanInput]]:
    """Return the nodes before the loop that the plan includes, and the scan inputs of the plan.

    A node is included if all readers of its result are the loop or other included nodes. The search checks a node again each time
    that it includes a reader of the node.
    """
    directions: dict[ir.Value, set[bool]] = {}
    for scan in loop.scan_inputs:
        directions.setdefault(scan.outer, set()).add(scan.reverse)
    chosen: dict[ir.Node, bool] = {}

    def readers_agree(value: ir.Value, reverse: bool) -> bool:
        known = directions.get(value, set()) <= {reverse}
        return known and all(node is loop.node or chosen.get(node) is reverse for node, _ in value.uses())

    pending = [(scan.outer, scan.reverse) for scan in loop.scan_inputs]
    while pending:
        value, reverse = pending.pop()
        node = value.producer()
        if node is None or node in chosen or node.graph is not loop.node.graph or value.is_graph_output():
            continue
        if value not in {state.initial for state in loop.states} and readers_agree(value, reverse):
            stacks = _stacks_read_by_row(node)
            if stacks is not None:
                chosen[node] = reverse
                pending += [(stack, reverse) for stack in stacks]

    def chosen_producers(values: Iterable[ir.Value | None]) -> list[ir.Node]:
        producers = (value.producer() for value in values if value is not None)
        return [node for node in producers if node is not None and node in chosen]

    order = postorder(chosen_producers(scan.outer for scan in loop.scan_inputs), lambda node: chosen_producers(node.inputs))
    scans = [scan for scan in loop.scan_inputs if scan.outer.producer() not in chosen]
    known = {(scan.outer, scan.reverse) for scan in scans}
    for node in order:
        for stack in _stacks_read_by_row(node) or ():
            if stack.producer() not in chosen and (stack, chosen[node]) not in known:
                known.add((stack, chosen[node]))
                scans.append(ScanInput(stack, stack, 0, chosen[node]))
    return order, scans


def _find_nodes_after(loop: ScanView, scans: Sequence[ScanInput]) -> tuple[list[ir.Node], list[ScanOutput]]:
    direction = {output.outer: output.reverse for output in loop.scan_outputs if output.outer is not None}
    results, chosen = list(direction), dict[ir.Node, None]()
    for scan in scans:
        direction.setdefault(scan.outer, scan.reverse)
    pending = _readers(results)
    while pending:
        node = pending.pop()
        if node in chosen or node.graph is not loop.node.graph:
            continue
        stacks = _stacks_read_by_row(node, lambda value: value in direction or const_array(value) is not None)
        if stacks is not None and len({direction.get(stack) for stack in stacks}) == 1 and stacks[0] in direction:
            chosen[node] = None
            direction[node.outputs[0]] = direction[stacks[0]]
            pending += _readers([node.outputs[0]])

    def is_read(value: ir.Value) -> bool:
        return value.is_graph_output() or any(node not in chosen for node, _ in value.uses())

    stacked = [output for output in loop.scan_outputs if output.outer is None or is_read(output.outer) or not chosen]
    stacked += [ScanOutput(result, result, 0, direction[result]) for node in chosen if is_read(result := node.outputs[0])]
    return list(chosen), stacked


def _readers(values: Iterable[ir.Value]) -> list[ir.Node]:
    return [node for value in values for node, _ in value.uses()]


def _stacks_read_by_row(node: ir.Node, is_allowed: Callable[[ir.Value], bool] = lambda _: True) -> list[ir.Value] | None:
    """Return the operands that ``node`` reads row by row along the first axis.

    Return None if the plan cannot include ``node``, for one of these reasons:

    * The operator is not cheap.
    * An operand is not a float tensor that fits the result row by row.
    * ``is_allowed`` returns False for an operand.
    """
    operands, result = [value for value in node.inputs if value is not None], node.outputs[0]
    if node.op_type not in _CHEAP or node.domain not in ("", "ai.onnx") or len(node.outputs) != 1 or result.shape is None:
        return None
    unsqueezes = node.op_type == "Unsqueeze"
    operands = operands[:1] if unsqueezes else operands
    if any(value.shape is None or value.dtype != ir.DataType.FLOAT or not is_allowed(value) for value in operands):
        return None
    stacks = []
    for value in operands:
        assert value.shape is not None
        fits = len(value.shape) == len(result.shape) or (unsqueezes and 0 not in unsqueezed_axes(node))
        if len(value.shape) and equal(value.shape[0], result.shape[0]) and fits:
            stacks.append(value)
        elif len(value.shape) >= len(result.shape) or unsqueezes:
            return None
    return stacks or None


def unsqueezed_axes(node: ir.Node) -> list[int]:
    """Return the axes that an Unsqueeze adds. If the axes or the rank are unknown, return [0].

    The caller refuses a node for which the result contains 0, because axis 0 is the axis of the steps.
    """
    known = const_array(node.inputs[1]) if len(node.inputs) > 1 else None
    attribute = node.attributes.get("axes")
    axes = known.reshape(-1).tolist() if known is not None else list(attribute.as_ints()) if attribute is not None else [0]
    rank = 0 if node.outputs[0].shape is None else len(node.outputs[0].shape)
    return sorted(axis % rank for axis in axes) if rank else [0]
