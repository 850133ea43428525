"""Writes the bidirectional node that replaces a pair of nodes, and lets their users read its results."""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.direction.pairs import JoiningConcat, Pair, joining_concats
from rewrites.graph.builder import Builder
from rewrites.graph.names import Names
from rewrites.graph.replace import remove_nodes, replace_value
from rewrites.graph.values import const_array, is_overridable, is_read
from rewrites.ops.rnn.functions import DEFAULTS, compact_parameters
from rewrites.ops.rnn.recurrent_node import GATES
from rewrites.ops.traits import operators
from rewrites.ops.versions import concat, reshape, split, squeeze, transpose
from rewrites.recurrent_nodes.expand import zero_state

__all__ = ["constant_tensor", "is_zero", "replace_results", "write_bidirectional"]

_KEEP_ZEROS = operators("copies") | {"Cast"}
_INPUTS = ("W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


def write_bidirectional(b: Builder, pair: Pair) -> tuple[ir.Value, ...]:
    """Write the bidirectional node for ``pair``, and return its results.

    A result that nothing reads has no name.
    """
    forward = pair.forward
    functions = [function for view in pair.views for function in view.functions[0]]
    names = [function.name for function in functions]
    alphas, betas = compact_parameters(functions)
    results = b.ops(
        forward.kind,
        [forward.x, *(_joined_input(b, pair, name) for name in _INPUTS)],
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


def _joined_input(b: Builder, pair: Pair, name: str) -> ir.Value | None:
    """Return input ``name`` of the bidirectional node: the inputs of both nodes, joined.

    They are joined along the directions axis. If only one of the nodes lacks the input, join zeros for it. If both lack it, return
    None. The input ``sequence_lens`` is the same for both nodes, so it is not joined.
    """
    values = [view.input(name) for view in pair.views]
    if name == "sequence_lens" or values == [None, None]:
        return values[0]
    if name.startswith("initial") and all(value is None or is_zero(value) for value in values):
        return None
    constants = [None if value is None else constant_tensor(value) for value in values]
    if name == "B" and None in values:
        width, kind = 2 * GATES[pair.forward.kind] * pair.forward.hidden, pair.forward.dtype
        assert kind is not None
        zero_bias = ir.tensor(np.zeros((1, width), kind.numpy()))
        constants = [zero_bias if value is None else constant for value, constant in zip(values, constants, strict=True)]
        values = [b.const(zero_bias.numpy()) if value is None else value for value in values]
    if None not in constants:
        return b.const(np.concatenate([constant.numpy() for constant in constants if constant is not None]))
    return concat(b, [zero_state(b, pair.forward) if value is None else value for value in values], 0)


def constant_tensor(value: ir.Value) -> ir.TensorProtocol | None:
    """Return the tensor of a constant ``value``, whatever its size, or None if ``value`` is not constant."""
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


def replace_results(b: Builder, pair: Pair, results: Sequence[ir.Value], names: Names, anchor: ir.Node) -> None:
    """Let the readers of the two nodes of ``pair`` read ``results`` of the bidirectional node.

    A Concat that joins a result of both nodes is replaced by the new result. For all other readers, a Split separates the two
    directions. New nodes are inserted before the node ``anchor``.
    """
    for (forth, back), value in zip(pair.outputs, results, strict=True):
        while forth is not None and back is not None and (concats := joining_concats(forth, back, b.opset)):
            joined = _as_joined(b, value, concats[0], pair.forward.hidden)
            b.insert_before(anchor)
            _replace_operands(concats[0], joined, names)
        old_results = [old for old in (forth, back) if old is not None]
        for node in _unread_moves(old_results):
            remove_nodes([node])
        if any(map(is_read, old_results)):
            parts = split(b, value, len(value.shape or ()) - 3, None, 2)
            b.insert_before(anchor)
            for old, part in zip((forth, back), parts, strict=True):
                if old is not None:
                    replace_value(old, part, names)


def _replace_operands(joining: JoiningConcat, joined: ir.Value, names: Names) -> None:
    """Replace the two operands of the Concat of ``joining`` by ``joined``.

    If the Concat has no other operand, replace the whole Concat.
    """
    node, index = joining.node, joining.index
    operands = [*node.inputs[:index], joined, *node.inputs[index + 2 :]]
    if len(operands) == 1:
        replace_value(node.outputs[0], joined, names)
        remove_nodes([node])
        return
    node.resize_inputs(len(operands))
    for i, operand in enumerate(operands):
        node.replace_input_with(i, operand)


def _as_joined(b: Builder, value: ir.Value, joining: JoiningConcat, hidden: int) -> ir.Value:
    """Rearrange ``value``, a result of the bidirectional node, like the joined operands of a Concat.

    ``joining`` describes this Concat. ``hidden``: the hidden size of the node.
    """
    axes, rank = joining.axes, len(value.shape or ())
    direction, last = rank - 3, rank - 1
    squeezed_axes = [axis for axis in range(rank) if axis not in axes and axis != direction]
    remaining = [axis for axis in range(rank) if axis not in squeezed_axes]
    squeezed = squeeze(b, value, squeezed_axes)
    if axes[joining.axis] == direction:
        return transpose(b, squeezed, [remaining.index(axis) for axis in axes])
    other_axes = [axis for axis in axes if axis != last]
    moved = transpose(b, squeezed, [remaining.index(axis) for axis in (*other_axes, direction, last)])
    joined = reshape(b, moved, [*[0] * len(other_axes), 2 * hidden])
    return transpose(b, joined, [[*other_axes, last].index(axis) for axis in axes])


def _unread_moves(values: Sequence[ir.Value]) -> list[ir.Node]:
    """Return chains of Identities, Squeezes and Transposes from ``values`` to results that are unread.

    The last node of a chain comes first in the list.
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
