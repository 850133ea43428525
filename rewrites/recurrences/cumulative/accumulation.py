"""States to which each step does something associative with what does not depend on them: ``s' = s + x``, ``s' = max(s, x)``.

Also the larger by a choice, ``s' = x if x > s else s``, and the last value that was taken on, ``s' = x if c else s``.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.graph.values import rank_of, through_identity
from rewrites.loops import ScanView, State

__all__ = ["Accumulation", "Choice", "Latch", "accumulations"]

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
    def also(self) -> list[ir.Node]:
        """The nodes that read the state for its next value alone."""
        return [self.node]

    @property
    def rank(self) -> int:
        """The rank of the state, which rules make sure that the body tells."""
        rank = rank_of(self.state.inner)
        assert rank is not None
        return rank

    @property
    def state_first(self) -> bool:
        """Whether the state is the operator's first operand."""
        return through_identity(self.node.inputs[0]) is self.state.inner

    @property
    def given(self) -> list[ir.Value]:
        """What the next value is made of, beside the state."""
        return [self.operand] if self.mask is None else [self.operand, self.mask[0]]


@dataclass(frozen=True)
class Choice(Accumulation):
    """``node`` is a Where that takes ``operand`` on where it is larger (``is_max``), or smaller, by ``compared``."""

    is_max: bool = True
    compared: ir.Node | None = None

    @property
    def op_type(self) -> str:
        """The operator that gives the same of numbers."""
        return "Max" if self.is_max else "Min"

    @property
    def also(self) -> list[ir.Node]:
        """The nodes that read the state for its next value alone."""
        flag = None if self.compared is None else self.compared.outputs[0]
        if self.compared is None or flag is None or len(flag.uses()) > 1 or flag.is_graph_output():
            return [self.node]
        return [self.node, self.compared]


@dataclass(frozen=True)
class Latch(Accumulation):
    """``node`` is a Where that takes ``operand`` on where ``mask`` says so, and keeps the state elsewhere."""

    @property
    def op_type(self) -> str:
        """A name of its own."""
        return "Latch"


def accumulations(loop: ScanView) -> Iterator[Accumulation]:
    """Find the states of ``loop`` that accumulate."""
    varying: set[ir.Value] | None = None
    for state in loop.states:
        made = through_identity(state.next)
        if (chooser := None if made is None else made.producer()) is not None and chooser.op_type == "Where":
            varying = varying or varying_values(loop.body, [one.inner for one in loop.states])
            if (found := _chosen(chooser, state, varying, loop)) is not None:
                yield found
                continue
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


_LARGER = {"Greater": 0, "Less": 1}
"""Which operand of a comparison is the larger, where it holds."""


def _chosen(node: ir.Node, state: State, varying: set[ir.Value], loop: ScanView) -> Choice | Latch | None:
    """Read a Where of the state and of what no state has a part in: by which of both is larger, or by a condition of that kind."""
    condition, *sides = (through_identity(value) for value in node.inputs)
    kept = [index for index, side in enumerate(sides) if side is state.inner]
    if len(kept) != 1 or condition is None or node.domain != "" or node.graph is not loop.body:
        return None
    taken, when = sides[1 - kept[0]], kept[0] == 1
    if taken is None or taken in varying:
        return None
    kind = state.inner.dtype
    if condition not in varying:
        if kind is None or (kind.is_floating_point() and not when):
            return None  # onnxruntime's Where makes 0 of a -0 that it keeps as its second operand
        return Latch(state, node, taken, (node,), (condition, when))
    compared = condition.producer()
    if compared is None or compared.op_type not in _LARGER or compared.domain != "" or not when:
        return None
    read = [through_identity(value) for value in compared.inputs]
    if read not in ([state.inner, taken], [taken, state.inner]):
        return None
    is_max = read[_LARGER[compared.op_type]] is taken
    return Choice(state, node, taken, (node,), None, is_max, compared)


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
