"""Checks that a plan does not exceed the limits of the format."""

import math

from rewrites.native.encoding import count_sizes
from rewrites.native.plan import Plan, PlanRefused
from rewrites.native.walks import PRODUCTS

__all__ = ["check_limits"]

_MOST_ELEMENTS = 2**31 - 1
_MOST_PORTS = 4096
_MOST_ENTRIES = 65_536
_MOST_AXES = 16
_PANEL = 16
"""The number of columns of a packed matrix is rounded up to a multiple of this."""


def check_limits(plan: Plan) -> None:
    """Raise PlanRefused if ``plan`` exceeds the limits of the format. All its sizes must be numbers."""
    dims = [*(each.dims for each in plan.inputs), *(each.dims for each in plan.outputs)]
    shapes = [[size.coefficient for size in each] for each in dims]
    packed = [pack.k.coefficient * -(-pack.n.coefficient // _PANEL) * _PANEL for pack in plan.packs]
    walked = [
        math.prod(size.coefficient for size in each.dims)
        * (math.prod(sorted(size.coefficient for size in each.matrix)[1:]) if each.op in PRODUCTS else 1)
        for each in plan.instructions
    ]
    if max([*map(math.prod, shapes), *packed, *walked, *(each.coefficient for each in plan.regions)]) > _MOST_ELEMENTS:
        raise PlanRefused("NATIVE-LIMIT", f"a value, or the walk of an operation, has more than {_MOST_ELEMENTS} elements")
    if max(len(plan.inputs), len(plan.outputs) + len(plan.states), len(plan.packs), len(plan.regions)) > _MOST_PORTS:
        raise PlanRefused("NATIVE-LIMIT", f"it has more than {_MOST_PORTS} inputs or outputs")
    if max(len(plan.values), len(plan.instructions), count_sizes(plan)) > _MOST_ENTRIES:
        raise PlanRefused("NATIVE-LIMIT", f"it would need more than {_MOST_ENTRIES} instructions, values or sizes")
    if any(len(shape) > _MOST_AXES for shape in shapes):
        raise PlanRefused("NATIVE-LIMIT", f"a value has more than {_MOST_AXES} axes")
