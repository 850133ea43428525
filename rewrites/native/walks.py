"""Finds the nested loops that compute a step of a plan. These loops are called the walk of the step.

Each loop runs over one axis. To keep the number of loops small, axes of size 1 are dropped, and neighbouring axes are merged if
their strides allow it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rewrites.native.body import Body, BodyStep
from rewrites.native.operations import Op
from rewrites.native.views import View

__all__ = ["ANY_STRIDES", "PRODUCTS", "PlanWalk", "copy_irregular_operands", "is_elementwise", "plan_walk"]

PRODUCTS = frozenset({Op.GEMM, Op.MATMUL})
INDEXED = frozenset({Op.GATHER, Op.SCATTER, Op.LOCATE})
ANY_STRIDES = frozenset({Op.COPY, Op.CAST}) | PRODUCTS | INDEXED
"""The operations whose operands may have any strides."""
_FEW = 8
"""A step of at most this many elements is walked element by element. Larger steps copy an operand that is not contiguous."""


@dataclass(frozen=True)
class PlanWalk:
    """The nested loops over axes that compute a step.

    Args:
        dims: The sizes of the axes, from the outermost to the innermost.
        strides: The strides of the target, and then of each operand. In a product, the last two strides are those of the matrix.
        matrix: M, N and K of a product; (1, 1, 1) for most other operations.
    """

    dims: list[int]
    strides: list[list[int] | None]
    matrix: tuple[int, int, int] = (1, 1, 1)


def is_elementwise(op: Op) -> bool:
    """Return True if each element of the result depends on the elements at the same position."""
    return op < Op.SUM


def plan_walk(step: BodyStep) -> PlanWalk:
    """Return the walk of a step."""
    if step.op in PRODUCTS:
        return _product_walk(step)
    operands = [step.target, *step.sources]
    kept = 0 if is_elementwise(step.op) or step.op in INDEXED else 1
    split = len(step.target.shape) - kept
    dims, strides = _merge_axes(step.target.shape[:split], [None if view is None else view.strides[:split] for view in operands])
    if kept:
        dims = [*dims, step.operands[0].shape[-1]]
        pairs = zip(strides, operands, strict=True)
        strides = [None if own is None or view is None else [*own, view.strides[-1]] for own, view in pairs]
    return PlanWalk(dims, strides, (*step.indexed, 1))


def _product_walk(step: BodyStep) -> PlanWalk:
    """Return the walk of a matrix product.

    If the right matrix is packed (GEMM), the batch axes and the rows of the left matrix may become one axis.
    """
    a, b, *rest = step.sources
    assert a is not None
    assert b is not None
    operands = [step.target, a, b, *rest]
    rows, columns, inner = *step.target.shape[-2:], a.shape[-1]
    outer = len(step.target.shape) - 2
    if step.op == Op.GEMM:
        kept = [None if view is None else view.strides[:-1] for view in [step.target, a, *rest]]
        dims, found = _merge_axes(step.target.shape[:-1], kept)
        rows = dims.pop() if dims else 1
        each = iter(found)
        strides: list[list[int] | None] = []
        for view in operands:
            own = [0] * (len(dims) + 1) if view is b else next(each)
            if own is None or view is None:
                strides.append(None)
            else:
                strides.append([0] * (len(dims) + 2) if view is b else [*(own or [0]), view.strides[-1]])
    else:
        dims, found = _merge_axes(step.target.shape[:outer], [None if view is None else view.strides[:outer] for view in operands])
        strides = [
            None if own is None or view is None else [*own, *view.strides[-2:]] for own, view in zip(found, operands, strict=True)
        ]
    return PlanWalk(dims, strides, (rows, columns, inner))


def _merge_axes(shape: Sequence[int], strides: Sequence[Sequence[int] | None]) -> tuple[list[int], list[list[int] | None]]:
    dims: list[int] = []
    found: list[list[int] | None] = [None if own is None else [] for own in strides]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        pairs = [(into, own[axis]) for into, own in zip(found, strides, strict=True) if into is not None and own is not None]
        if dims and all(into[-1] == stride * size for into, stride in pairs):
            dims[-1] *= size
            for into, stride in pairs:
                into[-1] = stride
        else:
            dims.append(size)
            for into, stride in pairs:
                into.append(stride)
    return dims, found


def copy_irregular_operands(steps: Sequence[BodyStep], body: Body) -> list[BodyStep]:
    """Copy each operand that is not contiguous, although its step needs contiguous elements.

    Return all steps in order. The copies come directly before the step that needs them.
    """
    body.steps = []
    for step in steps:
        _copy_irregular_operands(step, body)
        body.steps.append(step)
    return body.steps


def _copy_irregular_operands(step: BodyStep, body: Body) -> None:
    if step.op in ANY_STRIDES or math.prod(step.target.shape) <= _FEW:
        return
    walk = plan_walk(step)
    inner = [own[-1] if own else 1 for own in walk.strides]
    if inner[0] not in (0, 1):
        return
    for index, source in enumerate(step.sources):
        if source is not None and inner[index + 1] not in (0, 1):
            step.sources[index] = _dense_copy(body, source)


def _dense_copy(body: Body, view: View) -> View:
    """Return a dense copy of ``view``, in the shape of ``view``.

    If ``view`` repeats elements by a stride of 0, copy them once. The returned view repeats them in the same way.
    """
    own = tuple(1 if stride == 0 else size for size, stride in zip(view.shape, view.strides, strict=True))
    copy = body.copied(View(view.buffer, own, view.strides, view.offset, view.truth))
    strides = tuple(0 if size == 1 else stride for size, stride in zip(own, copy.strides, strict=True))
    return View(copy.buffer, view.shape, strides, copy.offset, view.truth)
