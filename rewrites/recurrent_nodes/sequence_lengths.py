"""Converts sequence lengths to int32 with one axis.

    LSTM (x, W, R, , lengths int64 [1, B])    ->    LSTM (x, W, R, , Reshape(Cast(lengths), [-1]))

The operator's definition requires an int32 tensor of shape [batch]. Some exporters write int64, or add an axis.
"""

import onnx_ir as ir

from rewrites.graph.context import Context
from rewrites.graph.type_names import type_name
from rewrites.graph.values import rank_of
from rewrites.ops.rnn.recurrent_node import RecurrentNode
from rewrites.rule import NOTHING_HERE, NotApplicable, Patch, Rule

__all__ = ["RULE", "check"]


_LENGTHS = 4


def check(view: RecurrentNode, ctx: Context) -> Patch | NotApplicable:
    """Return a patch if the lengths have another type than int32 or another rank than 1."""
    lengths = view.input("sequence_lens")
    if lengths is None:
        return NOTHING_HERE
    cast = lengths.dtype not in (None, ir.DataType.INT32)
    flatten = rank_of(lengths) not in (None, 1)
    if not cast and not flatten:
        return NOTHING_HERE
    if cast and lengths.dtype is not None and not lengths.dtype.is_integer():
        return NotApplicable(
            "RNN-INPUT", f"sequence_lens '{lengths.name}' is of type {type_name(lengths.dtype)}, which is no integer type"
        )

    def edit() -> list[ir.Node]:
        b = ctx.builder()
        flat = b.op("Reshape", lengths, b.const([-1])) if flatten else lengths
        plain = b.op("Cast", flat, to=int(ir.DataType.INT32)) if cast else flat
        b.insert_before(view.node)
        view.node.replace_input_with(_LENGTHS, plain)
        return [view.node]

    what = [*([f"are {type_name(lengths.dtype)}"] if cast else []), *([f"have {rank_of(lengths)} axes"] if flatten else [])]
    return Patch(f"converted lengths that {' and '.join(what)} to int32 with one axis", edit)


RULE = Rule("sequence-lengths", "rnn_nodes", "recurrent node", check)
