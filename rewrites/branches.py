"""Writes an If whose branches are built from detached nodes."""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.builder import Builder

__all__ = ["has_steps", "say_has_steps", "write_if"]

_HAS_STEPS = "ortscan.has_steps"


def write_if(
    b: Builder,
    condition: ir.Value,
    then: tuple[Builder, Sequence[ir.Value]],
    otherwise: tuple[Builder, Sequence[ir.Value]],
    hint: str | None,
) -> tuple[ir.Value, ...]:
    """Write an If on ``condition``, a tensor of one flag; each branch has the nodes collected in a builder, and its results.

    What it gives has the types and shapes of the first branch's results.
    """
    branches = [_branch(b, *then, "then_branch"), _branch(b, *otherwise, "else_branch")]
    made = b.node("If", [condition], len(then[1]), branches, hint=hint)
    for value, inside in zip(made, then[1], strict=True):
        value.type, value.shape = inside.type, inside.shape
    return made


def _branch(b: Builder, part: Builder, outputs: Sequence[ir.Value], name: str) -> ir.Attr:
    nodes, part.nodes = part.nodes, []
    return ir.AttrGraph(name, ir.Graph([], outputs, nodes=nodes, name=b.names.fresh(name)))


def say_has_steps(branch: ir.Graph | ir.Function | None) -> None:
    """Note that ``branch`` runs only where there are steps, so that the loop in it need not be guarded again."""
    assert branch is not None
    branch.meta[_HAS_STEPS] = True


def has_steps(branch: ir.Graph | ir.Function | None) -> bool:
    """Whether that was noted."""
    return branch is not None and bool(branch.meta.get(_HAS_STEPS))
