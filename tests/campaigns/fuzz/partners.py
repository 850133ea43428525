"""Second operands: values that broadcast with a first one."""

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.values import Val

__all__ = ["fits", "partner"]


def fits(s: Scope, x: Val, y: Val) -> bool:
    """Whether they broadcast at any size; now and then, only at the sizes drawn."""
    loose = s.world.chance(0.07)
    for a, b in zip(reversed(x.shape), reversed(y.shape), strict=False):
        if (
            a != b
            and 1 not in (a, b)
            and not (loose and (s.world.size(a) == s.world.size(b) or 1 in (s.world.size(a), s.world.size(b))))
        ):
            return False
    return True


def partner(s: Scope, x: Val) -> Val:
    """A second operand: something in sight that broadcasts, or a constant."""
    world = s.world
    found = s.pick(lambda v: v.dtype == x.dtype and fits(s, x, v)) if world.chance(0.7) else None
    if found is not None:
        return found
    shape = world.choose(
        [
            (),
            (1,),
            tuple(dim if isinstance(dim, int) else 1 for dim in x.shape),
            tuple(d for d in x.shape[-1:] if isinstance(d, int)),
        ]
    )
    return s.const(world.array(x.dtype, shape), x.dtype)
