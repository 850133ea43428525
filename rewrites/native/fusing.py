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

__all__ = ["fused", "readers"]


def readers(steps: Iterable[BodyStep], results: Iterable[View]) -> Counter[Buffer]:
    """Count how often ``steps`` and ``results`` read each buffer."""
    return Counter([*(source.buffer for step in steps for source in step.given), *(view.buffer for view in results)])


def fused(steps: Sequence[BodyStep], results: Sequence[View]) -> list[BodyStep]:
    """Return the steps, fused where possible."""
    count = readers(steps, results)
    writers = Counter(step.target.buffer for step in steps)
    made = {step.target.buffer: step for step in steps if writers[step.target.buffer] == 1}
    gone: set[int] = set()
    for step in steps:
        if step.op not in (Op.ADD, Op.SUB, Op.SUM):
            continue
        parts = [_maker(source, step, made, count) for source in step.given]
        joined = _as_dot(step, parts[0]) if step.op == Op.SUM else _with_matrix_product(step, parts) or _with_products(step, parts)
        for part in joined:
            gone.add(id(part))
    gone |= {id(part) for step in steps if step.op == Op.ADD for part in _as_log_of_powers(step, made, count)}
    return [step for step in steps if id(step) not in gone]


def _maker(view: View, step: BodyStep, made: dict[Buffer, BodyStep], count: Counter[Buffer]) -> BodyStep | None:
    """Return the step that computes the operand ``view`` of ``step``, or None if they cannot be fused.

    They may be fused if only ``step`` reads ``view``, if ``view`` is a whole buffer, and if the shapes over which the steps iterate
    differ at most in axes of size 1.
    """
    maker = made.get(view.buffer)
    if maker is None or count[view.buffer] != 1 or not view.is_whole or not maker.target.is_whole:
        return None
    same = _without_ones(view.shape) == _without_ones(maker.target.shape) == _without_ones(step.target.shape)
    return maker if same else None


def _without_ones(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _as_dot(step: BodyStep, part: BodyStep | None) -> list[BodyStep]:
    """Turn ``step``, a sum over ``part``, into a dot product if ``part`` is an elementwise product.

    The elements of the factors must be contiguous. Return the steps that are no longer needed.
    """
    if part is None or part.op != Op.MUL:
        return []
    factors = [_in_shape(source, step.target.shape) for source in part.given]
    if any(factor.strides[-1] not in (0, 1) for factor in factors):
        return []
    step.op, step.sources = Op.DOT, [*factors]
    return [part]


def _in_shape(view: View, shape: Sequence[int]) -> View:
    """Reshape ``view`` to ``shape``, which differs from the shape of ``view`` only in axes of size 1."""
    strides = iter(stride for size, stride in zip(view.shape, view.strides, strict=True) if size != 1)
    return replace(view, shape=tuple(shape), strides=tuple(next(strides) if size != 1 else 0 for size in shape))


def _with_matrix_product(step: BodyStep, parts: Sequence[BodyStep | None]) -> list[BodyStep]:
    """Fuse ``step``, an addition, with an operand that is a matrix product.

    Return the steps that are no longer needed.
    """
    if step.op != Op.ADD:
        return []
    for part, added in zip(parts, reversed(step.sources), strict=True):
        if part is None or part.op not in PRODUCTS or len(part.sources) > 2 or added is None:
            continue
        product_shape = part.target.shape
        step.op, step.sources = part.op, [*part.sources, _in_shape(added, product_shape)]
        step.target = _in_shape(step.target, product_shape)
        return [part]
    return []


def _with_products(step: BodyStep, parts: Sequence[BodyStep | None]) -> list[BodyStep]:
    """Fuse ``step``, a sum or difference, with operands that are elementwise products.

    Return the steps that are no longer needed.
    """
    one, other = (part if part is not None and part.op == Op.MUL else None for part in parts)
    shape = step.target.shape
    factors = [[] if part is None else [_in_shape(source, shape) for source in part.given] for part in (one, other)]
    if one is not None and other is not None:
        step.op, step.sources = Op.MUL_ADD_MUL if step.op == Op.ADD else Op.MUL_SUB_MUL, [*factors[0], *factors[1]]
        return [one, other]
    if one is not None:
        step.op, step.sources = Op.MUL_ADD if step.op == Op.ADD else Op.MUL_SUB, [*factors[0], step.sources[1]]
        return [one]
    if other is not None:
        step.op, step.sources = Op.MUL_ADD if step.op == Op.ADD else Op.SUB_MUL, [*factors[1], step.sources[0]]
        return [other]
    return []


def _as_log_of_powers(step: BodyStep, made: dict[Buffer, BodyStep], count: Counter[Buffer]) -> list[BodyStep]:
    """Turn ``step`` into LOG_ADD_EXP if it computes d = log(e^a + e^b) as shown above.

    Return the steps that are no longer needed.
    """

    def maker(view: View | None, op: Op, times: int = 1) -> BodyStep | None:
        found = None if view is None or not view.is_whole else made.get(view.buffer)
        if found is None or found.op != op or view is None or count[view.buffer] != times or not found.target.is_whole:
            return None
        return found if found.target.shape == view.shape == step.target.shape else None

    for larger, logarithm in (step.sources, step.sources[::-1]):
        top, log = maker(larger, Op.MAX, 3), maker(logarithm, Op.LOG)
        added = None if log is None else maker(log.sources[0], Op.ADD)
        powers = [] if added is None else [maker(source, Op.EXP) for source in added.sources]
        below = [None if power is None else maker(power.sources[0], Op.SUB) for power in powers]
        found = [each for each in (top, log, added, *powers, *below) if each is not None]
        if top is None or len(found) != 7 or any(each is None or each.sources[1] != larger for each in below):
            continue
        exponents = [each.sources[0] for each in below if each is not None]
        if exponents in (top.sources, top.sources[::-1]):
            step.op, step.sources = Op.LOG_ADD_EXP, list(top.sources)
            return found
    return []
