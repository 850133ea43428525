"""Cheap operators on whole stacks beside a loop, which its plan does step by step: each would pass over all steps in memory.

    u = Mul (z, x)  ys, ns = Scan (h, u) {...}  r = Div (ys, ns)    ->    one plan, of h, z and x, with r for its result

What is read elsewhere too stays where it is, before the loop; after it, it is computed in the plan and is stacked as well.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.dims import equal
from rewrites.graph.values import const_array
from rewrites.loops import ScanInput, ScanOutput, ScanView, captured_values

__all__ = ["Around", "around", "nothing_around", "unsqueezed"]

_CHEAP = frozenset({"Abs", "Add", "Div", "Max", "Min", "Mul", "Neg", "Relu", "Sub", "Unsqueeze"})


@dataclass(frozen=True)
class Around:
    """``before`` and ``after``: nodes in order. ``scans``: what is scanned then, where an outer value may stand for its own row.

    ``stacked``: the results of all steps, where the result of a node after the loop stands for its own row too.
    """

    before: tuple[ir.Node, ...]
    after: tuple[ir.Node, ...]
    scans: tuple[ScanInput, ...]
    stacked: tuple[ScanOutput, ...]

    @property
    def nodes(self) -> tuple[ir.Node, ...]:
        """All of them."""
        return (*self.before, *self.after)


def nothing_around(loop: ScanView) -> Around:
    """Return what is scanned and stacked by the loop alone."""
    return Around((), (), loop.scan_inputs, loop.scan_outputs)


def around(loop: ScanView) -> Around:
    """Return what can be done in the steps of the loop."""
    if any(scan.axis for scan in loop.scan_inputs) or any(output.axis for output in loop.scan_outputs):
        return nothing_around(loop)
    before, scans = _before(loop)
    after, stacked = _after(loop, scans)
    found = Around(tuple(before), tuple(after), tuple(scans), tuple(stacked))
    return found if _is_plain(loop, found) else nothing_around(loop)


def _is_plain(loop: ScanView, found: Around) -> bool:
    """Return True if no stack is read in both directions, or as a whole beside row by row."""
    rows = [scan.outer for scan in found.scans]
    made = {output.outer for output in loop.scan_outputs} | {node.outputs[0] for node in found.nodes}
    whole = set(captured_values(loop.body))
    for node in found.nodes:
        whole |= {value for value in node.inputs if value is not None} - set(_stacks(node) or ())
    both = len({(scan.outer, scan.reverse) for scan in found.scans}) != len(set(rows))
    return not both and not whole & {*rows, *made}


def _before(loop: ScanView) -> tuple[list[ir.Node], list[ScanInput]]:
    """Nodes that only what is scanned is made of; each is looked at again when another of its readers is taken."""
    directions: dict[ir.Value, set[bool]] = {}
    for scan in loop.scan_inputs:
        directions.setdefault(scan.outer, set()).add(scan.reverse)
    taken: dict[ir.Node, bool] = {}

    def readers_agree(value: ir.Value, reverse: bool) -> bool:
        known = directions.get(value, set()) <= {reverse}
        return known and all(node is loop.node or taken.get(node) is reverse for node, _ in value.uses())

    left = [(scan.outer, scan.reverse) for scan in loop.scan_inputs]
    while left:
        value, reverse = left.pop()
        node = value.producer()
        if node is None or node in taken or node.graph is not loop.node.graph or value.is_graph_output():
            continue
        if value not in {state.initial for state in loop.states} and readers_agree(value, reverse):
            stacks = _stacks(node)
            if stacks is not None:
                taken[node] = reverse
                left += [(stack, reverse) for stack in stacks]
    order: dict[ir.Node, None] = {}
    for scan in loop.scan_inputs:
        _with_makers(scan.outer, taken, order)
    scans = [scan for scan in loop.scan_inputs if scan.outer.producer() not in taken]
    known = {(scan.outer, scan.reverse) for scan in scans}
    for node in order:
        for stack in _stacks(node) or ():
            if stack.producer() not in taken and (stack, taken[node]) not in known:
                known.add((stack, taken[node]))
                scans.append(ScanInput(stack, stack, 0, taken[node]))
    return list(order), scans


def _with_makers(value: ir.Value, taken: dict[ir.Node, bool], order: dict[ir.Node, None]) -> None:
    left: list[tuple[ir.Value, bool]] = [(value, False)]
    while left:
        value, made = left.pop()
        node = value.producer()
        if node is None or node not in taken or node in order:
            continue
        if made:
            order[node] = None
        else:
            left += [(value, True), *((source, False) for source in node.inputs if source is not None)]


def _after(loop: ScanView, scans: Sequence[ScanInput]) -> tuple[list[ir.Node], list[ScanOutput]]:
    direction = {output.outer: output.reverse for output in loop.scan_outputs if output.outer is not None}
    results, taken = list(direction), dict[ir.Node, None]()
    for scan in scans:
        direction.setdefault(scan.outer, scan.reverse)
    left = _readers(results)
    while left:
        node = left.pop()
        if node in taken or node.graph is not loop.node.graph:
            continue
        stacks = _stacks(node, lambda value: value in direction or const_array(value) is not None)
        if stacks is not None and len({direction.get(stack) for stack in stacks}) == 1 and stacks[0] in direction:
            taken[node] = None
            direction[node.outputs[0]] = direction[stacks[0]]
            left += _readers([node.outputs[0]])

    def is_read(value: ir.Value) -> bool:
        return value.is_graph_output() or any(node not in taken for node, _ in value.uses())

    stacked = [output for output in loop.scan_outputs if output.outer is None or is_read(output.outer) or not taken]
    stacked += [ScanOutput(made, made, 0, direction[made]) for node in taken if is_read(made := node.outputs[0])]
    return list(taken), stacked


def _readers(values: Iterable[ir.Value]) -> list[ir.Node]:
    return [node for value in values for node, _ in value.uses()]


def _stacks(node: ir.Node, allowed: Callable[[ir.Value], bool] = lambda _: True) -> list[ir.Value] | None:
    """Return what a node reads row by row along the first axis of its result; None where it is no cheap operator that does."""
    given, made = [value for value in node.inputs if value is not None], node.outputs[0]
    if node.op_type not in _CHEAP or node.domain not in ("", "ai.onnx") or len(node.outputs) != 1 or made.shape is None:
        return None
    if node.op_type == "Unsqueeze":
        given = given[:1]
    if any(value.shape is None or value.dtype != ir.DataType.FLOAT or not allowed(value) for value in given):
        return None
    stacks = []
    for value in given:
        assert value.shape is not None
        if (
            len(value.shape)
            and equal(value.shape[0], made.shape[0])
            and (len(value.shape) == len(made.shape) or (node.op_type == "Unsqueeze" and 0 not in unsqueezed(node)))
        ):
            stacks.append(value)
        elif len(value.shape) >= len(made.shape) or node.op_type == "Unsqueeze":
            return None
    return stacks or None


def unsqueezed(node: ir.Node) -> list[int]:
    """Return the axes of the result that an Unsqueeze adds; the first one where they are not known."""
    known = const_array(node.inputs[1]) if len(node.inputs) > 1 else None
    attribute = node.attributes.get("axes")
    axes = known.reshape(-1).tolist() if known is not None else list(attribute.as_ints()) if attribute is not None else [0]
    rank = 0 if node.outputs[0].shape is None else len(node.outputs[0].shape)
    return sorted(axis % rank for axis in axes) if rank else [0]
