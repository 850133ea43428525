"""A Cast between a Transpose and a MatMul goes before the Transpose, since onnxruntime may not survive it there.

    MatMul(Cast(Transpose <perm = [1, 0, 2]> (x)), w)    ->    MatMul(Transpose <perm = [1, 0, 2]> (Cast(x)), w)

onnxruntime 1.31 swaps the two itself to fuse the Transpose into the product, and ends the process with a segmentation fault where
the Transpose moves the first axis behind others but the last, or last, and the other operand is of another rank. Casts between
any types do it, and what onnxruntime drops or fuses may stand between: Identity, Slice, Reshape and the like, and sums and products
with one number, which go along with the Cast. Equal ranks are left alone.
"""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.moving import remove_nodes
from rewrites.graph.values import const_array, rank_of
from rewrites.graph.walk import all_nodes

__all__ = ["BETWEEN", "cast_early", "moves_axes"]

_MOVEMENT = frozenset({"Expand", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"})
_ARITHMETIC = frozenset({"Add", "Div", "Mul", "Sub"})
BETWEEN = _MOVEMENT | _ARITHMETIC | {"Cast", "Dropout"}
"""What may stand between the Transpose and the product."""
_TRAINS = 3
"""How many inputs a Dropout has that is told whether to train."""


@dataclass(frozen=True)
class _Link:
    """A node, and which of its inputs it moves, or works on number by number."""

    node: ir.Node
    place: int

    @property
    def moves(self) -> bool:
        """Whether it changes no number."""
        return self.node.op_type in _MOVEMENT or self.node.op_type == "Dropout"

    @property
    def is_cast(self) -> bool:
        """Whether it casts."""
        return self.node.op_type == "Cast"

    @property
    def source(self) -> ir.Value | None:
        """What it reads."""
        return self.node.inputs[self.place]


def _link_above(value: ir.Value | None) -> _Link | None:
    """Give the node that gives ``value``, where onnxruntime may drop or fuse it, or where it casts or transposes."""
    node = None if value is None else value.producer()
    if node is None or node.domain != "" or value is not node.outputs[0]:
        return None
    if node.op_type in _MOVEMENT or node.op_type == "Cast" or (node.op_type == "Dropout" and len(node.inputs) < _TRAINS):
        return _Link(node, 0)
    if node.op_type in _ARITHMETIC:
        return next((_Link(node, place) for place in (0, 1) if _is_number(node.inputs[1 - place])), None)
    return None


def _is_number(value: ir.Value | None) -> bool:
    array = const_array(value)
    return array is not None and array.size == 1 and array.ndim <= 1


def cast_early(ctx: Context) -> None:
    """Do so all over the model."""
    moved: dict[ir.Value, ir.Value] = {}
    for node in list(all_nodes(ctx.model.graph)):
        if node.op_type == "MatMul" and node.domain == "" and _ranks_differ(*node.inputs):
            for place in range(len(node.inputs)):
                _look_above(_Link(node, place), moved, ctx)


def moves_axes(value: ir.Value, graph: ir.Graph | ir.Function | None) -> bool:
    """Whether ``value`` is, but for what onnxruntime may drop or fuse, the result of a Transpose of ``graph``."""
    link = _link_above(value)
    while link is not None and link.node.graph is graph:
        if _transposes(link):
            return True
        link = _link_above(link.source)
    return False


def _transposes(link: _Link) -> bool:
    return link.node.op_type == "Transpose" and (rank_of(link.node.outputs[0]) or 3) > 2


def _ranks_differ(left: ir.Value | None, right: ir.Value | None) -> bool:
    ranks = [None if value is None else rank_of(value) for value in (left, right)]
    return None in ranks or ranks[0] != ranks[1]


def _look_above(reader: _Link, moved: dict[ir.Value, ir.Value], ctx: Context) -> None:
    chain, transposes = list[_Link](), 0
    below, link = reader, _link_above(reader.source)
    while link is not None and link.node.graph is reader.node.graph:
        if link.is_cast and not chain:
            reader = below
        if chain or link.is_cast:
            chain.append(link)
            if _transposes(link):
                transposes = len(chain)
        below, link = link, _link_above(link.source)
    if not transposes:
        return
    del chain[transposes:]
    old = reader.source
    assert old is not None
    if old not in moved:
        moved[old] = _reordered(chain[::-1], ctx)
    reader.node.replace_input_with(reader.place, moved[old])
    _drop([link.node for link in chain])


def _reordered(chain: list[_Link], ctx: Context) -> ir.Value:
    """Write the nodes of ``chain`` again, those that work on numbers first; the last one of it stands there still."""
    b, value = ctx.builder(), chain[0].source
    assert value is not None
    dtype = value.dtype
    for link in sorted(chain, key=lambda one: one.moves):
        inputs = list(link.node.inputs)
        inputs[link.place] = value
        made = b.like(link.node, inputs)[0]
        dtype = dtype if link.moves else link.node.outputs[0].dtype
        made.type = made.type if dtype is None else ir.TensorType(dtype)
        if link.moves:
            made.shape = link.node.outputs[0].shape if made.shape is None else made.shape
        else:
            made.shape = value.shape
        value = made
    b.insert_before(chain[-1].node)
    return value


def _drop(nodes: list[ir.Node]) -> None:
    """Remove ``nodes``, each of which reads the next one, as far as nobody reads them."""
    for node in nodes:
        if any(value.uses() or value.is_graph_output() for value in node.outputs):
            return
        remove_nodes([node])
