"""Writes the bidirectional node that replaces a pair of nodes, and lets their users read its results."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.direction.pairs import Meeting, Pair, meetings
from rewrites.graph.builder import Builder
from rewrites.graph.names import Names
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, is_overridable, is_read
from rewrites.ops.rnn.functions import DEFAULTS, compact_parameters
from rewrites.ops.rnn.recurrent_node import GATES
from rewrites.ops.traits import operators
from rewrites.ops.versions import concat, reshape, split, squeeze, transpose
from rewrites.recurrent_nodes.expand import zero_state

__all__ = ["constant_behind", "hand_out", "is_zero", "write_bidirectional"]

_KEEP_ZEROS = operators("copies") | {"Cast"}
_INPUTS = ("W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


def write_bidirectional(b: Builder, pair: Pair) -> tuple[ir.Value, ...]:
    """Write the bidirectional node for ``pair``, and return its results.

    A result has no name if it is not read.
    """
    forward = pair.forward
    functions = [function for view in pair.views for function in view.functions[0]]
    names = [function.name for function in functions]
    alphas, betas = compact_parameters(functions)
    results = b.ops(
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
    for value, read in zip(results, pair.outputs, strict=True):
        if read == (None, None):
            value.name = ""
    return results


def _both(b: Builder, pair: Pair, name: str) -> ir.Value | None:
    """Return input ``name`` of both nodes, joined along the directions axis.

    If only one node lacks the input, join zeros instead. If both nodes lack it, return None. The input ``sequence_lens`` is not
    joined, because it is the same for both nodes.
    """
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
    return concat(b, [zero_state(b, pair.forward) if value is None else value for value in values], 0)


def constant_behind(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the constant tensor that ``value`` holds, however large it is.

    Return None if ``value`` is not constant.
    """
    return None if is_overridable(value) else ir.convenience.get_const_tensor(value)


def is_zero(value: ir.Value) -> bool:
    """Return True if all elements of ``value`` are known to be 0."""
    array, node = const_array(value), value.producer()
    if array is not None:
        return array.dtype.kind not in "OSU" and not array.any()
    if node is None or node.domain != "":
        return False
    if node.op_type == "ConstantOfShape":
        return "value" not in node.attributes or not node.attributes["value"].as_tensor().numpy().any()
    source = node.inputs[0] if node.inputs else None
    return node.op_type in _KEEP_ZEROS and source is not None and is_zero(source)


def hand_out(b: Builder, pair: Pair, results: Sequence[ir.Value], names: Names, anchor: ir.Node) -> None:
    """Let the users of the nodes of ``pair`` read ``results``, the results of the bidirectional node.

    Concats that join a result of both nodes are replaced. For all other users, a Split separates the two directions. New nodes are
    inserted before ``anchor``.
    """
    for (forth, back), value in zip(pair.outputs, results, strict=True):
        while forth is not None and back is not None and (met := meetings(forth, back, b.opset)):
            joined = _together(b, value, met[0], pair.forward.hidden)
            b.insert_before(anchor)
            _replace_operands(met[0], joined, names)
        olds = [old for old in (forth, back) if old is not None]
        for node in _unread_moves(olds):
            remove_nodes([node])
        if any(map(is_read, olds)):
            parts = split(b, value, len(value.shape or ()) - 3, None, 2)
            b.insert_before(anchor)
            for old, part in zip((forth, back), parts, strict=True):
                if old is not None:
                    replace_value(old, part, names)


def _replace_operands(meeting: Meeting, joined: ir.Value, names: Names) -> None:
    """Replace the two operands of ``meeting`` by ``joined``.

    If the Concat has no other operand, replace the whole Concat.
    """
    node, index = meeting.node, meeting.index
    operands = [*node.inputs[:index], joined, *node.inputs[index + 2 :]]
    if len(operands) == 1:
        replace_value(node.outputs[0], joined, names)
        remove_nodes([node])
        return
    node.resize_inputs(len(operands))
    for i, operand in enumerate(operands):
        node.replace_input_with(i, operand)


def _together(b: Builder, value: ir.Value, meeting: Meeting, hidden: int) -> ir.Value:
    """Rearrange ``value``, a result of the bidirectional node, to what the Concat of ``meeting`` joined."""
    axes, rank = meeting.axes, len(value.shape or ())
    direction, last = rank - 3, rank - 1
    gone = [axis for axis in range(rank) if axis not in axes and axis != direction]
    left = [axis for axis in range(rank) if axis not in gone]
    squeezed = squeeze(b, value, gone)
    if axes[meeting.axis] == direction:
        return transpose(b, squeezed, [left.index(axis) for axis in axes])
    others = [axis for axis in axes if axis != last]
    moved = transpose(b, squeezed, [left.index(axis) for axis in (*others, direction, last)])
    joined = reshape(b, moved, [*[0] * len(others), 2 * hidden])
    return transpose(b, joined, [[*others, last].index(axis) for axis in axes])


def _unread_moves(values: Sequence[ir.Value]) -> list[ir.Node]:
    """Return the Identities, Squeezes and Transposes behind ``values`` that no other operator reads.

    A chain of such nodes is returned if nothing reads the result of its last node. The last node of a chain comes first.
    """
    unread = list[ir.Node]()

    def is_unread(value: ir.Value) -> bool:
        used = value.is_graph_output()
        for node, _ in value.uses():
            if node.op_type in ("Identity", "Squeeze", "Transpose") and node.domain == "" and is_unread(node.outputs[0]):
                unread.append(node)
            else:
                used = True
        return not used

    for value in values:
        is_unread(value)
    return unread
