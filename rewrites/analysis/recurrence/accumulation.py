"""States to which each step does something associative with what does not depend on them: ``s' = s + x``, ``s' = max(s, x)``."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.graph.values import through_identity
from rewrites.loops import ScanView, State

__all__ = ["Accumulation", "accumulations"]

_BOTH = (0, 1)
_SIDES = {"Add": _BOTH, "And": _BOTH, "Max": _BOTH, "Min": _BOTH, "Mul": _BOTH, "Or": _BOTH, "Sub": (0,)}
"""Where the state may stand among the operands."""


@dataclass(frozen=True)
class Accumulation:
    """``node`` makes the next value of ``state`` of it and of ``operand``, which no state has a part in.

    ``makers``: that node, and others that compute the same. ``mask``: where elements of that value are taken on, and not the state
    as it was: in all steps (None), or where its value is the flag beside it; then the one of ``makers`` is the Where that chooses.
    """

    state: State
    node: ir.Node
    operand: ir.Value
    makers: tuple[ir.Node, ...]
    mask: tuple[ir.Value, bool] | None = None

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.node.op_type

    @property
    def state_first(self) -> bool:
        """Whether the state is the operator's first operand."""
        return through_identity(self.node.inputs[0]) is self.state.inner

    @property
    def given(self) -> list[ir.Value]:
        """What the next value is made of, beside the state."""
        return [self.operand] if self.mask is None else [self.operand, self.mask[0]]


def accumulations(loop: ScanView) -> Iterator[Accumulation]:
    """Find the states of ``loop`` that accumulate."""
    varying: set[ir.Value] | None = None
    for state in loop.states:
        made = through_identity(state.next)
        chosen = None if made is None else made.producer()
        node, mask = (chosen, None) if chosen is None or chosen.op_type != "Where" else _unmasked(chosen, state)
        if chosen is None or node is None or node.graph is not loop.body or node.domain != "" or len(node.inputs) != 2:
            continue
        sides = [side for side in _SIDES.get(node.op_type, ()) if through_identity(node.inputs[side]) is state.inner]
        operand = node.inputs[1 - sides[0]] if len(sides) == 1 else None
        if operand is None:
            continue
        varying = varying or varying_values(loop.body, [one.inner for one in loop.states])
        if mask is not None and operand not in varying and mask[0] not in varying:
            yield Accumulation(state, node, operand, (chosen,), mask)
        elif mask is None and operand not in varying:
            alike = _operands(node)
            others = [one for one in loop.body if one is not node and (one.domain, one.op_type) == ("", node.op_type)]
            makers = [node, *(one for one in others if _operands(one) == alike)]
            yield Accumulation(state, node, operand, tuple(makers))


def _unmasked(chosen: ir.Node, state: State) -> tuple[ir.Node | None, tuple[ir.Value, bool] | None]:
    """Return the node whose result, which nothing else reads, ``chosen`` takes where its condition is as the flag says."""
    condition, *sides = (through_identity(value) for value in chosen.inputs)
    kept = [index for index, side in enumerate(sides) if side is state.inner]
    if len(kept) != 1 or condition is None:
        return None, None
    taken = chosen.inputs[2 - kept[0]]
    node = None if taken is None or len(taken.uses()) != 1 or taken.is_graph_output() else taken.producer()
    return node, (condition, kept[0] == 1)


def _operands(node: ir.Node) -> Collection[ir.Value | None]:
    read = [through_identity(value) for value in node.inputs]
    return read if node.op_type == "Sub" else set(read)
