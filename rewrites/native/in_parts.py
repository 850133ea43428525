"""Copies of whole results are left out: what makes the result writes it where it was copied to.

a = x + y; c[0:4] = a; c[4:8] = b     ->  c[0:4] = x + y; c[4:8] = b
"""

from collections import Counter
from collections.abc import Sequence

from rewrites.native.body import Step
from rewrites.native.operations import Op
from rewrites.native.places import Places
from rewrites.native.views import Buffer, Home, View
from rewrites.native.walks import walk_of

__all__ = ["computed_in_parts"]


def computed_in_parts(steps: Sequence[Step], places: Places) -> list[Step]:
    """Return the steps without the copies of results that are read by nothing else."""
    count = Counter(source.buffer for step in steps for source in step.given)
    makers: dict[Buffer, list[Step]] = {}
    for step in steps:
        makers.setdefault(step.target.buffer, []).append(step)
    kept = []
    for step in steps:
        source = step.sources[0]
        if step.op == Op.COPY and source is not None and _is_own(source, count, places):
            made = makers.get(source.buffer, [])
            if len(made) == 1 and _redirected(made[0], source, step.target):
                makers[step.target.buffer] = [made[0] if one is step else one for one in makers[step.target.buffer]]
                continue
        kept.append(step)
    return kept


def _is_own(source: View, count: Counter[Buffer], places: Places) -> bool:
    return source.buffer.home == Home.COMPUTED and source.is_whole and count[source.buffer] == 1 and source.buffer not in places.of


def _redirected(maker: Step, source: View, place: View) -> bool:
    """Let ``maker`` write to ``place`` where its walk allows it."""
    shape = maker.target.shape
    if not maker.target.is_whole or [size for size in shape if size != 1] != [size for size in source.shape if size != 1]:
        return False
    strides = iter(stride for size, stride in zip(place.shape, place.strides, strict=True) if size != 1)
    target = View(place.buffer, shape, tuple(next(strides) if size != 1 else 0 for size in shape), place.offset)
    trial = Step(maker.op, target, maker.sources, maker.immediates)
    inner = walk_of(trial).strides[0]
    if maker.op not in (Op.COPY, Op.CAST) and inner and inner[-1] != 1:
        return False
    maker.target = target
    return True
