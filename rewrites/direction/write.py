"""Writes one bidirectional node for two of one direction each, and what each of them gave."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.direction.meetings import Meeting, meetings
from rewrites.direction.pairs import Pair
from rewrites.graph.builder import Builder
from rewrites.graph.names import Names
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, is_overridable
from rewrites.ops.rnn.functions import DEFAULTS, compact
from rewrites.ops.rnn.recurrent_node import GATES
from rewrites.ops.traits import operators
from rewrites.ops.versions import concat, reshape, shape_of, split, squeeze, transpose
from rewrites.recurrent_nodes.empty_results import zeros_of

__all__ = ["constant_behind", "hand_out", "is_zero", "write_bidirectional"]

_KEEP_ZEROS = operators("copies") | {"Cast"}
_INPUTS = ("W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


def write_bidirectional(b: Builder, pair: Pair) -> tuple[ir.Value, ...]:
    """Write the node, and return its results: those that nobody reads have no name."""
    forward = pair.forward
    functions = [function for view in pair.views for function in view.functions[0]]
    names = [function.name for function in functions]
    alphas, betas = compact(functions)
    made = b.ops(
        forward.kind,
        [forward.x, *(_both(b, pair, name) for name in _INPUTS)],
        len(pair.outputs),
        hint=forward.node.outputs[0].name or forward.kind.lower(),
        hidden_size=forward.hidden,
        direction="bidirectional",
        activations=None if tuple(names) == DEFAULTS[forward.kind] * 2 else names,
        activation_alpha=alphas or None,
        activation_beta=betas or None,
        clip=forward.clip,
        linear_before_reset=1 if forward.linear_before_reset else None,
        input_forget=1 if forward.input_forget else None,
    )
    for value, read in zip(made, pair.outputs, strict=True):
        if read == (None, None):
            value.name = ""
    return made


def _both(b: Builder, pair: Pair, name: str) -> ir.Value | None:
    """Return an input of both nodes one below the other along the axis of directions; what one does not have is 0."""
    values = [view.input(name) for view in pair.views]
    if name == "sequence_lens" or values == [None, None]:
        return values[0]
    if name.startswith("initial") and all(value is None or is_zero(value) for value in values):
        return None
    constants = [None if value is None else constant_behind(value) for value in values]
    if name == "B" and None in values:
        width, kind = 2 * GATES[pair.forward.kind] * pair.forward.hidden, pair.forward.dtype
        assert kind is not None
        nothing = ir.tensor(np.zeros((1, width), kind.numpy()))
        constants = [nothing if value is None else constant for value, constant in zip(values, constants, strict=True)]
        values = [b.const(nothing.numpy()) if value is None else value for value in values]
    if None not in constants:
        return b.const(np.concatenate([constant.numpy() for constant in constants if constant is not None]))
    return concat(b, [_zeros(b, pair) if value is None else value for value in values], 0)


def constant_behind(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the constant that ``value`` is, of whatever size."""
    return None if is_overridable(value) else ir.convenience.get_const_tensor(value)


def is_zero(value: ir.Value) -> bool:
    """Whether all elements of ``value`` are 0, however many they are."""
    array, node = const_array(value), value.producer()
    if array is not None:
        return array.dtype.kind not in "OSU" and not array.any()
    if node is None or node.domain != "":
        return False
    if node.op_type == "ConstantOfShape":
        return "value" not in node.attributes or not node.attributes["value"].as_tensor().numpy().any()
    source = node.inputs[0] if node.inputs else None
    return node.op_type in _KEEP_ZEROS and source is not None and is_zero(source)


def _zeros(b: Builder, pair: Pair) -> ir.Value:
    """Return an initial state of zeros: [1, rows, hidden]."""
    kind = pair.forward.dtype
    assert kind is not None
    shape = concat(b, [b.const([1]), shape_of(b, pair.forward.x, 1), b.const([pair.forward.hidden])], 0)
    return zeros_of(b, shape, kind)


def hand_out(b: Builder, pair: Pair, made: Sequence[ir.Value], names: Names, anchor: ir.Node) -> None:
    """Let what read the two nodes read ``made``, for which all that was built is put before ``anchor``."""
    for (one, other), value in zip(pair.outputs, made, strict=True):
        while one is not None and other is not None and (met := meetings(one, other, b.opset)):
            joined = _together(b, value, met[0], pair.forward.hidden)
            b.insert_before(anchor)
            _replace_operands(met[0], joined, names)
        for node in _unread_moves([each for each in (one, other) if each is not None]):
            remove_nodes([node])
        sides = [each is not None and bool(each.uses() or each.is_graph_output()) for each in (one, other)]
        if any(sides):
            parts = split(b, value, len(value.shape or ()) - 3, None, 2)
            b.insert_before(anchor)
            for old, part in zip((one, other), parts, strict=True):
                if old is not None:
                    replace_value(old, part, names)


def _replace_operands(meeting: Meeting, joined: ir.Value, names: Names) -> None:
    """Let a Concat take ``joined`` for the two operands, or let those who read it do so where it has no others."""
    node, place = meeting.node, meeting.place
    operands = [*node.inputs[:place], joined, *node.inputs[place + 2 :]]
    if len(operands) == 1:
        replace_value(node.outputs[0], joined, names)
        remove_nodes([node])
        return
    node.resize_inputs(len(operands))
    for i, operand in enumerate(operands):
        node.replace_input_with(i, operand)


def _together(b: Builder, value: ir.Value, meeting: Meeting, hidden: int) -> ir.Value:
    """Return what a Concat of both results was, from the result of both directions."""
    axes, axis, rank = meeting.axes, meeting.axis, len(value.shape or ())
    direction = rank - 3
    gone = [each for each in range(rank) if each not in axes and each != direction]
    left = [each for each in range(rank) if each not in gone]
    plain = squeeze(b, value, gone)
    if axes[axis] == direction:
        return transpose(b, plain, [left.index(each) for each in axes])
    *others, last = [each for each in axes if each != rank - 1] + [rank - 1]
    turned = transpose(b, plain, [left.index(each) for each in (*others, direction, last)])
    joined = reshape(b, turned, [*[0] * len(others), 2 * hidden])
    order = [*others, last]
    return transpose(b, joined, [order.index(each) for each in axes])


def _unread_moves(values: Sequence[ir.Value]) -> list[ir.Node]:
    """Return the nodes that only move axes of ``values`` for nobody, those behind others first."""
    found = list[ir.Node]()

    def look(value: ir.Value) -> bool:
        """Whether nobody reads ``value`` in the end."""
        used = value.is_graph_output()
        for node, _ in value.uses():
            if node.op_type in ("Identity", "Squeeze", "Transpose") and node.domain == "" and look(node.outputs[0]):
                found.append(node)
            else:
                used = True
        return not used

    for value in values:
        look(value)
    return found
