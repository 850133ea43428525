"""Find states that accumulate an operand by an associative operator, and stack the operands.

Examples are ``s' = s + x`` and ``s' = max(s, x)``. A choice, ``s' = x if x > s else s``, and a latch, ``s' = x if c else s``,
accumulate too. To add an operator, enter it in ``_SIDES`` and ``neutral`` below, and in ``_FORMS`` of ``forms.py``. New Where nodes
keep the loop's order of operands, because onnxruntime's Where returns 0 for a -0 in its second input.

Works around ORT-WHERE-MINUS-ZERO.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from rewrites.analysis.dependence import varying_values
from rewrites.batching.alignment import stacked_value
from rewrites.fission.stacks import Stacks
from rewrites.graph.dims import same, without_axis
from rewrites.graph.values import const_array, rank_of, static_dims, through_identity
from rewrites.loops import ScanView, State
from rewrites.ops.versions import unsqueeze
from rewrites.recurrences.results import StateUse
from rewrites.scans.associative_scan import StackEnds

__all__ = ["Accumulation", "accumulations", "aligned", "expanded", "is_filled", "neutral", "put_states", "rows_of", "shaped"]


_BOTH = (0, 1)
_SIDES = {"Add": _BOTH, "And": _BOTH, "Max": _BOTH, "Min": _BOTH, "Mul": _BOTH, "Or": _BOTH, "Sub": (0,)}
"""The operators that accumulate, each with the inputs that may be the state."""
_LARGER = {"Greater": 0, "Less": 1}
"""The index of the input that is larger if the comparison is true."""


@dataclass(frozen=True)
class Accumulation:
    """A state that accumulates ``operand``, which depends on no state.

    Args:
        op_type: The operator; "Max" or "Min" for a choice, "Latch" for a latch, "Mean" for a running mean.
        node: The node that combines ``state`` with ``operand``.
        makers: The nodes that compute the next value: ``node`` and its duplicates, or the Where of a mask.
        also: The nodes that read the state only to compute the next value.
        mask: A condition and a flag. The state changes only in steps whose condition equals the flag. None if it always changes.
        is_choice: True if ``node`` is a Where that keeps the larger (or smaller) of state and operand.
    """

    state: State
    op_type: str
    node: ir.Node
    operand: ir.Value
    makers: tuple[ir.Node, ...]
    also: tuple[ir.Node, ...]
    mask: tuple[ir.Value, bool] | None = None
    is_choice: bool = False

    @property
    def rank(self) -> int:
        """The rank of the state, which must be known."""
        rank = rank_of(self.state.inner)
        assert rank is not None
        return rank

    @property
    def sources(self) -> list[ir.Value]:
        """The body values, other than the state, from which the next value is computed."""
        return [self.operand] if self.mask is None else [self.operand, self.mask[0]]


def accumulations(loop: ScanView) -> Iterator[Accumulation]:
    """Find the states of ``loop`` that accumulate."""
    varying: set[ir.Value] | None = None
    for state in loop.states:
        value = through_identity(state.next)
        node = None if value is None else value.producer()
        if node is None or node.graph is not loop.body or node.domain != "" or node.op_type not in ("Where", *_SIDES):
            continue
        varying = varying or varying_values(loop.body, [each.inner for each in loop.states])
        if node.op_type == "Where":
            match = _choice_or_latch(node, state, varying) or _masked_accumulation(node, state, varying, loop)
        else:
            operand = _operand(node, state, varying)
            same = [each for each in loop.body if (each.domain, each.op_type) == ("", node.op_type)]
            others = [each for each in same if each is not node and _operands(each) == _operands(node)]
            match = None if operand is None else Accumulation(state, node.op_type, node, operand, (node, *others), (node,))
        if match is not None:
            yield match


def _operand(node: ir.Node, state: State, varying: Collection[ir.Value]) -> ir.Value | None:
    """Return the operand that ``node`` combines with ``state``; None if the operand depends on a state.

    ``varying``: the values that depend on a state.
    """
    sides = _SIDES.get(node.op_type, ()) if len(node.inputs) == 2 else ()
    own = [side for side in sides if through_identity(node.inputs[side]) is state.inner]
    operand = node.inputs[1 - own[0]] if len(own) == 1 else None
    return None if operand in varying else operand


def _operands(node: ir.Node) -> Collection[ir.Value | None]:
    read = [through_identity(value) for value in node.inputs]
    return read if node.op_type == "Sub" else set(read)


def _mask(where: ir.Node, state: State) -> tuple[ir.Value, bool, ir.Value] | None:
    """Read a Where that either keeps the state or takes a new value. Return None for any other node.

    Returns:
        A tuple (condition, flag, new value). The Where takes the new value if the condition equals the flag.
    """
    condition, *sides = (through_identity(value) for value in where.inputs)
    kept = [index for index, side in enumerate(sides) if side is state.inner]
    new_value = where.inputs[2 - kept[0]] if len(kept) == 1 else None
    return None if condition is None or new_value is None else (condition, kept[0] == 1, new_value)


def _choice_or_latch(where: ir.Node, state: State, varying: Collection[ir.Value]) -> Accumulation | None:
    """Read a choice or a latch: a Where between the state and a new value that depends on no state.

    The condition of a choice compares the state with the new value. The condition of a latch depends on no state.
    """
    mask = _mask(where, state)
    new_value = None if mask is None else through_identity(mask[2])
    if mask is None or new_value is None or new_value in varying:
        return None
    (condition, when, _), kind = mask, state.inner.dtype
    if condition not in varying:
        if kind is None or (kind.is_floating_point() and not when):
            return None  # onnxruntime's Where returns 0 for a -0 in its second input, which is the state here
        return Accumulation(state, "Latch", where, new_value, (where,), (where,), (condition, when))
    compared = condition.producer()
    if compared is None or compared.op_type not in _LARGER or compared.domain != "" or not when:
        return None
    read = [through_identity(value) for value in compared.inputs]
    if read not in ([state.inner, new_value], [new_value, state.inner]):
        return None
    flag, op_type = compared.outputs[0], "Max" if read[_LARGER[compared.op_type]] is new_value else "Min"
    also = (where,) if len(flag.uses()) > 1 or flag.is_graph_output() else (where, compared)
    return Accumulation(state, op_type, where, new_value, (where,), also, is_choice=True)


def _masked_accumulation(where: ir.Node, state: State, varying: Collection[ir.Value], loop: ScanView) -> Accumulation | None:
    """Read a masked accumulation: a Where that keeps the state or takes the accumulated value.

    No other node may read the accumulated value.
    """
    mask = _mask(where, state)
    if mask is None or mask[0] in varying or len(mask[2].uses()) != 1 or mask[2].is_graph_output():
        return None
    node = mask[2].producer()
    operand = None if node is None or node.graph is not loop.body or node.domain != "" else _operand(node, state, varying)
    return (
        None if node is None or operand is None else Accumulation(state, node.op_type, node, operand, (where,), (node,), mask[:2])
    )


def rows_of(stacks: Stacks, total: Accumulation) -> ir.Value:
    """Return the operands of all steps, shaped [steps, *state axes].

    If the operator is Sub, the operands are negated. In steps in which a mask keeps the state, the neutral element replaces the
    operand.
    """
    b, rows = stacks.build, aligned(stacks, total.operand, total.rank)
    if total.op_type == "Sub":
        rows = b.op("Neg", rows)
    if total.mask is not None and total.op_type != "Latch":
        condition, when = total.mask
        sides = [rows, b.const(neutral(total))]
        rows = b.op("Where", aligned(stacks, condition, total.rank), *(sides if when else reversed(sides)))
    return expanded(stacks, rows, total.state.initial)


def aligned(stacks: Stacks, value: ir.Value, rank: int) -> ir.Value:
    """Return ``value`` for all steps in a shape that broadcasts to stacks of states with ``rank`` axes.

    The rank of ``value`` comes from the body, because the rank of a scanned tensor may be unknown.
    """
    operand = stacks.get(value)
    assert operand.rank is not None
    rows = stacked_value(stacks.build, operand, stacks.steps)
    return unsqueeze(stacks.build, rows, range(1, 1 + rank - operand.rank))


def expanded(stacks: Stacks, rows: ir.Value, initial: ir.Value) -> ir.Value:
    """Broadcast ``rows`` to the shape [steps, *axes of ``initial``]."""
    b, dims = stacks.build, static_dims(initial)
    if same(without_axis(rows.shape, 0), initial.shape):
        return rows
    shape = b.const([1, *dims]) if dims is not None else b.op("Concat", b.const([1]), b.op("Shape", initial), axis=0)
    return b.op("Expand", rows, shape)


def neutral(total: Accumulation) -> np.ndarray:
    """Return the neutral element of the operator that ``total`` uses.

    For sums of floats it is -0, because adding 0 would change -0 to 0.
    """
    assert total.state.initial.dtype is not None
    kind = np.dtype(total.state.initial.dtype.numpy())
    if total.op_type in ("Max", "Min"):
        lowest, highest = (-np.inf, np.inf) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
        return np.array(lowest if total.op_type == "Max" else highest, kind)
    return np.array({"And": True, "Mul": 1, "Or": False}.get(total.op_type, -0.0 if kind.kind == "f" else 0), kind)


def put_states(stacks: Stacks, use: StateUse, rows: ir.Value, states: ir.Value, first: ir.Value | None = None) -> ir.Value | None:
    """Put two stacks into ``stacks``, each only if it is read: the states after and before each step.

    Return the last state if it is read, else None.

    Args:
        rows: The operands of all steps.
        states: The states after each step.
        first: The initial state with a steps axis of size 1, if such a value exists.
    """
    initial, ends = use.state.initial, StackEnds(stacks.build, stacks.backwards)
    states = shaped(states, rows, initial)
    if use.after:
        stacks.set(use.nexts[0], states)
    if use.before:
        before = ends.with_first(first or unsqueeze(stacks.build, initial, [0]), ends.without_last(states))
        stacks.set(use.state.inner, shaped(before, rows, initial))
    return ends.last(states) if use.final else None


def shaped(stack: ir.Value, rows: ir.Value, initial: ir.Value) -> ir.Value:
    """Return ``stack`` with its shape set to [number of ``rows``, *axes of ``initial``], if it is known."""
    if rows.shape is not None and initial.shape is not None:
        stack.shape = ir.Shape([rows.shape[0], *initial.shape.dims])
    return stack


def is_filled(value: ir.Value, number: float) -> bool:
    """Return True if all elements of ``value`` are known to be ``number``. -0 does not count as 0."""
    node = value.producer()
    if node is not None and node.domain == "":
        if node.op_type == "Expand" and node.inputs[0] is not None:
            return is_filled(node.inputs[0], number)
        if node.op_type == "ConstantOfShape":
            filled = node.attributes.get_tensor("value")
            return number == 0 if filled is None else _all_are(filled.numpy(), number)
    array = const_array(value)
    return array is not None and _all_are(array, number)


def _all_are(array: np.ndarray, number: float) -> bool:
    return bool((array == number).all()) and (array.dtype.kind != "f" or not np.signbit(array).any())
