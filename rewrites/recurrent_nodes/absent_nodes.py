"""Finds recurrent nodes that the target of a model does not run."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.base.abilities import Abilities
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context
from rewrites.graph.values import dim_of
from rewrites.loops.view import nodes_with_paths
from rewrites.ops.rnn.functions import DEFAULTS
from rewrites.ops.rnn.recurrent_node import is_recurrent, read

__all__ = ["Absent", "absent_nodes", "is_a_recurrence", "lacks", "steps_of"]


@dataclass(frozen=True)
class Absent:
    """A recurrent node that the target does not run.

    Args:
        node: The node.
        where: The path of the node: the names of the nodes whose graphs contain the node, and the name of the node.
        why: The reason why the target does not run the node.
    """

    node: ir.Node
    where: str
    why: str

    @property
    def steps(self) -> int | str | None:
        """Return the number of steps, as ``steps_of`` does."""
        return steps_of(self.node)


def steps_of(node: ir.Node) -> int | str | None:
    """Return the number of steps of a recurrent node.

    It is an int, the name of a symbolic size, or None if it is unknown.
    """
    x = node.inputs[0] if node.inputs else None
    return None if x is None else dim_of(x, int(node.attributes.get_int("layout", 0) or 0))


def absent_nodes(ctx: Context) -> list[Absent]:
    """Return the recurrent nodes that the target cannot run and that are outside of all loops.

    Return an empty list for a target that runs loops.
    """
    target = ctx.options.target
    if target.loops:
        return []
    recurrent = ((node, path) for node, path in nodes_with_paths(ctx.model.graph, into_loops=False) if is_a_recurrence(node))
    reasons = ((node, path, lacks(node, target)) for node, path in recurrent)
    return [Absent(node, path, why) for node, path, why in reasons if why is not None]


def is_a_recurrence(node: ir.Node) -> bool:
    """Return True if ``node`` is an RNN, GRU or LSTM, or onnxruntime's LSTM with quantised weights."""
    return is_recurrent(node) or (node.op_type == "DynamicQuantizeLSTM" and node.domain == "com.microsoft")


def lacks(node: ir.Node, target: Abilities) -> str | None:
    """Return a phrase about the feature of the recurrent ``node`` that ``target`` lacks, or None.

    For a target named ``npu``, for example: ``npu runs no LSTM with peepholes``. None means that the target runs the node, or that
    ``node`` has inputs or attributes that ortscan cannot read.
    """
    limits = target.recurrent.get(node.op_type)
    if limits is None:
        return f"{target.name} has no {node.op_type}"
    view = read(node)
    if isinstance(view, NotApplicable):
        return None
    missing = limits.lacking(
        activations=any(tuple(function.name for function in each) != DEFAULTS[view.kind] for each in view.functions),
        clip=view.clip is not None,
        peepholes=view.kind == "LSTM" and view.input("P") is not None,
        input_forget=view.input_forget,
        reset_before=view.kind == "GRU" and not view.linear_before_reset,
        lengths=view.input("sequence_lens") is not None,
    )
    return f"{target.name} runs no {view.kind} with {missing}" if missing else None
