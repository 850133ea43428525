"""Fuses steps, such as a product followed by a sum. The results stay bit-identical.

    m = a * b; d = m + c           ->  d = a * b + c, which rounds twice, as the two steps do
    m = a @ w; d = m + c           ->  d = a @ w + c
    m = a * b; d = sum of m        ->  d = a . b
    m = max(a, b); p = a - m; q = b - m; e = exp p; f = exp q; s = e + f; l = log s; d = m + l    ->  d = log(e^a + e^b)

Steps are fused only if no other step reads the intermediate results, and if the loop does not return them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rewrites.native.body import BodyStep
from rewrites.native.operations import Op
from rewrites.native.views import Buffer, View
from rewrites.native.walks import PRODUCTS

__all__ = ["count_reads", "fuse_steps"]


def count_reads(steps: Iterable[BodyStep], results: Iterable[View]) -> Counter[Buffer]:
    """Count how often ``steps`` and ``results`` read each buffer."""
    return Counter([*(source.buffer for step in steps for source in step.operands), *(view.buffer for view in results)])


def fuse_steps(steps: Sequence[BodyStep], results: Sequence[View]) -> list[BodyStep]:
    """Fuse steps where possible, and return the remaining steps.

    ``results``: the values that the loop returns.
    """
    read_counts = count_reads(steps, results)
    writers = Counter(step.target.buffer for step in steps)
    producers = {step.target.buffer: step for step in steps if writers[step.target.buffer] == 1}
    removed: set[int] = set()
    for step in steps:
        if step.op not in (Op.ADD, Op.SUB, Op.SUM):
            continue
        operand_producers = [_fusable_producer(source, step, producers, read_counts) for source in step.operands]
        fused = (
            _fuse_dot_product(step, operand_producers[0])
            if step.op == Op.SUM
            else _fuse_matrix_product(step, operand_producers) or _fuse_products(step, operand_producers)
        )
        for gone in fused:
            removed.add(id(gone))
    removed |= {id(gone) for step in steps if step.op == Op.ADD for gone in _fuse_log_add_exp(step, producers, read_counts)}
    return [step for step in steps if id(step) not in removed]


def _fusable_producer(
    view: View, step: BodyStep, producers: dict[Buffer, BodyStep], read_counts: Counter[Buffer]
) -> BodyStep | None:
    """Return the step that computes ``view``, an operand of ``step``, if the two steps can be fused.

    Otherwise return None. They can be fused if only ``step`` reads ``view``, if ``view`` is a whole buffer, and if the two steps
    iterate over shapes that differ at most in axes of size 1.

    Args:
        producers: Maps each buffer to the only step that writes it.
        read_counts: How often each buffer is read.
    """
    producer = producers.get(view.buffer)
    if producer is None or read_counts[view.buffer] != 1 or not view.is_whole or not producer.target.is_whole:
        return None
    same = _without_unit_axes(view.shape) == _without_unit_axes(producer.target.shape) == _without_unit_axes(step.target.shape)
    return producer if same else None


def _without_unit_axes(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _fuse_dot_product(step: BodyStep, producer: BodyStep | None) -> list[BodyStep]:
    """Turn ``step`` into a dot product if it sums an elementwise product, computed by ``producer``.

    The elements of both factors must be contiguous. Return the steps that are no longer needed.
    """
    if producer is None or producer.op != Op.MUL:
        return []
    factors = [_reshape_unit_axes(source, step.target.shape) for source in producer.operands]
    if any(factor.strides[-1] not in (0, 1) for factor in factors):
        return []
    step.op, step.sources = Op.DOT, [*factors]
    return [producer]


def _reshape_unit_axes(view: View, shape: Sequence[int]) -> View:
    """Return ``view`` with the shape ``shape``. The two shapes may differ only in axes of size 1."""
    strides = iter(stride for size, stride in zip(view.shape, view.strides, strict=True) if size != 1)
    return replace(view, shape=tuple(shape), strides=tuple(next(strides) if size != 1 else 0 for size in shape))


def _fuse_matrix_product(step: BodyStep, producers: Sequence[BodyStep | None]) -> list[BodyStep]:
    """Fuse ``step``, an addition, with an operand that is a matrix product.

    Return the steps that are no longer needed.
    """
    if step.op != Op.ADD:
        return []
    for producer, addend in zip(producers, reversed(step.sources), strict=True):
        if producer is None or producer.op not in PRODUCTS or len(producer.sources) > 2 or addend is None:
            continue
        product_shape = producer.target.shape
        step.op, step.sources = producer.op, [*producer.sources, _reshape_unit_axes(addend, product_shape)]
        step.target = _reshape_unit_axes(step.target, product_shape)
        return [producer]
    return []


def _fuse_products(step: BodyStep, sides: Sequence[BodyStep | None]) -> list[BodyStep]:
    """Fuse ``step``, a sum or difference, with operands that are elementwise products.

    Return the steps that are no longer needed.
    """
    left, right = (producer if producer is not None and producer.op == Op.MUL else None for producer in sides)
    shape = step.target.shape
    factors = [
        [] if producer is None else [_reshape_unit_axes(source, shape) for source in producer.operands]
        for producer in (left, right)
    ]
    if left is not None and right is not None:
        step.op, step.sources = Op.MUL_ADD_MUL if step.op == Op.ADD else Op.MUL_SUB_MUL, [*factors[0], *factors[1]]
        return [left, right]
    if left is not None:
        step.op, step.sources = Op.MUL_ADD if step.op == Op.ADD else Op.MUL_SUB, [*factors[0], step.sources[1]]
        return [left]
    if right is not None:
        step.op, step.sources = Op.MUL_ADD if step.op == Op.ADD else Op.SUB_MUL, [*factors[1], step.sources[0]]
        return [right]
    return []


def _fuse_log_add_exp(step: BodyStep, producers: dict[Buffer, BodyStep], read_counts: Counter[Buffer]) -> list[BodyStep]:
    """Turn ``step`` into LOG_ADD_EXP if it is the last step of the module's example, d = log(e^a + e^b).

    Return the steps that are no longer needed.
    """

    def producer(view: View | None, op: Op, reads: int = 1) -> BodyStep | None:
        found = None if view is None or not view.is_whole else producers.get(view.buffer)
        if found is None or found.op != op or view is None or read_counts[view.buffer] != reads or not found.target.is_whole:
            return None
        return found if found.target.shape == view.shape == step.target.shape else None

    for larger, logarithm in (step.sources, step.sources[::-1]):
        maximum, log = producer(larger, Op.MAX, 3), producer(logarithm, Op.LOG)
        addition = None if log is None else producer(log.sources[0], Op.ADD)
        powers = [] if addition is None else [producer(source, Op.EXP) for source in addition.sources]
        differences = [None if power is None else producer(power.sources[0], Op.SUB) for power in powers]
        found = [each for each in (maximum, log, addition, *powers, *differences) if each is not None]
        if maximum is None or len(found) != 7 or any(each is None or each.sources[1] != larger for each in differences):
            continue
        exponents = [each.sources[0] for each in differences if each is not None]
        if exponents in (maximum.sources, maximum.sources[::-1]):
            step.op, step.sources = Op.LOG_ADD_EXP, list(maximum.sources)
            return found
    return []
