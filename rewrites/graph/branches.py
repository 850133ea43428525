"""Builds an If from branches of detached nodes.

Works around ORT-IF-10-SIZES.
"""

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from rewrites.base import since
from rewrites.graph.builder import Builder
from rewrites.graph.dims import differ, meet, without_names
from rewrites.graph.marks import CONDITION_OF_STEPS

__all__ = ["SOME_STEPS", "has_steps", "of_a_size_not_inferred", "say_has_steps", "write_if"]

SOME_STEPS = "some_steps"
"""The name prefix of a branch that runs only if there are steps."""


def write_if(
    b: Builder,
    condition: ir.Value,
    then: tuple[Builder, Sequence[ir.Value]],
    otherwise: tuple[Builder, Sequence[ir.Value]],
    hint: str | None,
    *,
    unlike: bool = False,
) -> tuple[ir.Value, ...]:
    """Add an If to the builder ``b``.

    Args:
        b: The builder that gets the If.
        condition: A tensor of one boolean.
        then: The builder with the nodes of the branch for True, and the results of this branch.
        otherwise: The builder with the nodes of the branch for False, and the results of this branch.
        hint: The name on which the names of the results are based.
        unlike: True if the branches may return different sizes. Before opset 11, this hides the sizes of all results, because
            onnxruntime would infer the sizes from one branch.

    Returns:
        The results of the If, with the types and shapes of the results of ``then``.
    """
    if unlike:
        then, otherwise = (
            (part, [of_a_size_not_inferred(part, value, condition) for value in results]) for part, results in (then, otherwise)
        )
    elif b.opset < since.IF_SIZES_APART:
        pairs = list(zip(then[1], otherwise[1], strict=False))
        then = (then[0], [_sized_apart(then[0], part, other, condition, both=True) for part, other in pairs])
        otherwise = (otherwise[0], [_sized_apart(otherwise[0], other, part, condition, both=False) for part, other in pairs])
    branches = [_branch(b, *then, "then_branch"), _branch(b, *otherwise, "else_branch")]
    outputs = b.node("If", [condition], len(then[1]), branches, hint=hint)
    for value, inside in zip(outputs, then[1], strict=True):
        value.type, value.shape = inside.type, inside.shape
    return outputs


def of_a_size_not_inferred(b: Builder, value: ir.Value, flag: ir.Value) -> ir.Value:
    """Return a copy of ``value`` whose sizes cannot be inferred.

    Before opset 11, onnxruntime infers sizes for one branch of an If, and declares the result of the If with these sizes. The copy
    prevents this. A Reshape makes the copy. Its shape is computed from ``flag``, any boolean that is not constant. From opset 11
    on, no copy is needed, and this function returns ``value`` itself.
    """
    if b.opset >= since.IF_SIZES_APART:
        return value
    nothing = b.op("Mul", b.op("Cast", flag, to=ir.DataType.INT64), b.const(np.array(0, np.int64)))
    hidden = b.op("Reshape", value, b.op("Mul", b.op("Shape", value), nothing))
    hidden.type, hidden.shape = value.type, None if value.shape is None else ir.Shape([None] * len(value.shape))
    return hidden


def _sized_apart(b: Builder, value: ir.Value, other: ir.Value, flag: ir.Value, *, both: bool) -> ir.Value:
    """Hide the sizes of ``value`` by ``of_a_size_not_inferred`` if ``other`` may have other sizes.

    ``value`` and ``other`` are the results of the two branches for one output of the If. ``both``: if True, hide the sizes only if
    the two shapes are known to differ.
    """
    if not isinstance(value.type, ir.TensorType | None):
        return value
    if value.shape is None or other.shape is None:
        return value if both else of_a_size_not_inferred(b, value, flag)
    in_common = without_names(meet([value.shape, other.shape]))
    unlike = differ(value.shape, other.shape) if both else in_common != without_names(value.shape)
    return of_a_size_not_inferred(b, value, flag) if unlike else value


def _branch(b: Builder, part: Builder, outputs: Sequence[ir.Value], name: str) -> ir.Attr:
    """Return a branch as the attribute ``name`` of an If.

    The branch has the nodes of ``part`` and returns ``outputs``. If a value occurs several times in ``outputs``, an Identity copies
    it for each repetition, because onnxruntime would return the value only once.
    """
    outputs = [part.op("Identity", value) if value in outputs[:index] else value for index, value in enumerate(outputs)]
    nodes, part.nodes = part.nodes, []
    return ir.AttrGraph(name, ir.Graph([], outputs, nodes=nodes, name=b.names.fresh(name)))


def say_has_steps(branch: ir.Graph | ir.Function | None) -> None:
    """Mark ``branch`` as a branch that runs only if its loop has steps.

    A loop in a marked branch needs no guard against zero steps.
    """
    assert branch is not None
    CONDITION_OF_STEPS.put(branch, True)


def has_steps(branch: ir.Graph | ir.Function | None) -> bool:
    """Return True if ``branch`` is marked as a branch that runs only if its loop has steps.

    Marks are lost when a model is saved. In a loaded model, such a branch is known by the prefix of its name.
    """
    return branch is not None and (CONDITION_OF_STEPS.on(branch) or (branch.name or "").startswith(SOME_STEPS))
