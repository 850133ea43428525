"""What a plan may be at most; the library refuses larger ones when a session is made, which is too late."""

import math

from rewrites.native.encoding import count_sizes
from rewrites.native.plan import Plan
from rewrites.native.refused import Refused
from rewrites.native.walks import PRODUCTS

__all__ = ["check_limits"]

_MOST_ELEMENTS = 2**31 - 1
_MOST_PORTS = 4096
_MOST_ENTRIES = 65_536
_MOST_AXES = 16
_PANEL = 16
"""Columns of a packed matrix are rounded up to a multiple of so many."""


def check_limits(plan: Plan) -> None:
    """Refuse a plan (with sizes that are numbers) that the format has no room for."""
    dims = [*(each.dims for each in plan.inputs), *(each.dims for each in plan.outputs)]
    shapes = [[size.coefficient for size in each] for each in dims]
    packed = [pack.k.coefficient * -(-pack.n.coefficient // _PANEL) * _PANEL for pack in plan.packs]
    walked = [
        math.prod(size.coefficient for size in each.dims)
        * (math.prod(sorted(size.coefficient for size in each.matrix)[1:]) if each.op in PRODUCTS else 1)
        for each in plan.instructions
    ]
    if max([*map(math.prod, shapes), *packed, *walked, *(each.coefficient for each in plan.regions)]) > _MOST_ELEMENTS:
        raise Refused("NATIVE-LIMIT", f"a value, or what one operation runs over, has more than {_MOST_ELEMENTS} elements")
    if max(len(plan.inputs), len(plan.outputs) + len(plan.states), len(plan.packs), len(plan.regions)) > _MOST_PORTS:
        raise Refused("NATIVE-LIMIT", f"it has more than {_MOST_PORTS} inputs or outputs")
    if max(len(plan.values), len(plan.instructions), count_sizes(plan)) > _MOST_ENTRIES:
        raise Refused("NATIVE-LIMIT", f"it would take more than {_MOST_ENTRIES} instructions, values or sizes")
    if any(len(shape) > _MOST_AXES for shape in shapes):
        raise Refused("NATIVE-LIMIT", f"a value has more than {_MOST_AXES} axes")
