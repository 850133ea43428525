"""How many steps a block of outer products is to have, whether blocks lie side by side, and what that takes, by an estimate."""

from dataclasses import dataclass, replace
from math import prod

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.analysis.outer_products.matrix_state import MatrixState
from rewrites.base.costs import Costs
from rewrites.graph.context import Options
from rewrites.graph.values import bytes_per_element

__all__ = ["Plan", "Shape", "block_shape", "fewest_steps", "plan_of"]

_LENGTHS = (16, 32, 64, 128)
_USUAL = 1024
"""Steps, where nothing is known of their number."""
_MANY = 1 << 20
_FLAT_NODES, _INNER_NODES, _AROUND = 24, 20, 24
_CACHE = 1 << 20
_MARGIN = 1.2


@dataclass(frozen=True)
class Shape:
    """``steps`` (``are_known``: in the model) of ``heads`` matrices of ``keys`` by ``values``, of numbers of ``wide`` bytes.

    ``passes``: over what is between steps, to get the weights.
    """

    steps: int
    are_known: bool
    heads: int
    keys: int
    values: int
    passes: int
    wide: int

    @property
    def state_bytes(self) -> int:
        """The bytes of the matrices."""
        return self.wide * self.heads * self.keys * self.values


@dataclass(frozen=True)
class Plan:
    """``length``: the steps of a block. ``ns``, ``bytes``: about what all takes."""

    length: int
    is_flat: bool
    ns: float
    bytes: int


def block_shape(found: MatrixState, sizes: StepSizes) -> Shape:
    """Return the shape of ``found``."""
    options = sizes.options

    def size(label: int) -> int:
        known = found.axes.size(label)
        return known if isinstance(known, int) else options.sizes.get(known or "", options.assumed_dim)

    return Shape(
        sizes.steps if sizes.steps_known else _USUAL,
        isinstance(sizes.loop.steps, int),
        prod(map(size, found.heads)),
        1 if found.key is None else size(found.key),
        prod(map(size, found.values)),
        8 if found.decay.factors else 2,
        bytes_per_element(found.state.inner),
    )


def plan_of(shape: Shape, options: Options) -> Plan:
    """Return the plan that takes the least time, of those that fit into memory, where one does."""
    lengths = [(length, is_flat) for length in _LENGTHS if length < shape.steps for is_flat in (False, True)]
    if shape.are_known and shape.steps <= _LENGTHS[-1]:
        lengths.append((shape.steps, False))
    plans = [_plan(shape, length, options.costs, is_flat=is_flat) for length, is_flat in lengths]
    plans = plans or [_plan(shape, _LENGTHS[0], options.costs, is_flat=False)]
    fitting = [plan for plan in plans if plan.bytes <= options.memory_budget]
    return min(fitting or plans, key=lambda plan: plan.ns)


def fewest_steps(shape: Shape, plan: Plan, nodes: int, options: Options) -> int | None:
    """Return from how many steps on ``plan`` is faster than a loop of ``nodes`` by a fifth; None where it never is."""
    steps = plan.length
    while steps < _MANY:
        found = _plan(replace(shape, steps=steps), plan.length, options.costs, is_flat=plan.is_flat)
        if found.ns * _MARGIN < options.costs.loop_ns(steps, nodes, shape.state_bytes):
            return steps
        steps *= 2
    return None


def _plan(shape: Shape, length: int, costs: Costs, *, is_flat: bool) -> Plan:
    blocks, heads, sides = -(-shape.steps // length), shape.heads, shape.keys + shape.values
    steps = blocks * length
    products = steps * heads * (length * sides + 2 * shape.keys * shape.values)
    small = 1 + 16 / min(length, shape.keys, shape.values)
    rows, between = shape.wide * steps * heads * sides, shape.wide * steps * heads * length * shape.passes
    states = blocks * shape.state_bytes
    moved = 6 * rows + between + 3 * states
    around = costs.operator * _AROUND + 4 * rows * costs.far_byte + products * costs.product * small
    if blocks == 1 or is_flat:
        near = moved < 4 * _CACHE
        loop = costs.loop_ns(blocks, 3, shape.state_bytes) if blocks > 1 else 0.0
        ns = around + loop + costs.operator * _FLAT_NODES + moved * (costs.near_byte if near else costs.far_byte)
        return Plan(length, is_flat, ns, 4 * rows + 2 * between // shape.passes + 3 * states)
    held = moved // blocks
    each = costs.step + costs.node * _INNER_NODES
    ns = around + costs.start + blocks * each + moved * (costs.near_byte if held < 4 * _CACHE else costs.far_byte)
    return Plan(length, is_flat, ns, 4 * rows)
