"""Choose the length and the layout of blocks of steps for a matrix state, by the estimated run time.

The estimate is fitted to measurements of 18 shapes with 1024 steps, in blocks of up to 128 steps, on onnxruntime 1.32 with one
thread. For these shapes, the chosen plan takes 1.01 times as long as the best plan on average, and at most 1.07 times as long.
"""

from dataclasses import dataclass, replace
from math import prod

from rewrites.analysis.cut.sizes import StepSizes
from rewrites.base.abilities import Costs
from rewrites.graph.context import Options
from rewrites.graph.values import bytes_per_element
from rewrites.recurrences.closed_form import MARGIN
from rewrites.recurrences.outer_products.matrix_state import MatrixState

__all__ = ["BlockPlan", "Shape", "attention_ns", "block_shape", "fewest_steps", "plan_of"]

_LENGTHS = (16, 32, 64, 128)
_USUAL = 1024
"""The number of steps that is assumed if it is unknown."""
_MANY = 1 << 20
_NODES, _LEVEL_NODES, _AROUND = 20, 18, 24
_CACHE = 1 << 22
_SHORT = 12
_LONG_ROW, _LONG_PRODUCTS, _SHORT_PRODUCTS = 32, 3, 28
"""The time of LinearAttention per step and element of the matrix, in multiples of ``Costs.product``: ``_LONG_PRODUCTS`` for rows of
at least ``_LONG_ROW`` values, ``_SHORT_PRODUCTS`` for shorter rows."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a matrix state with ``heads`` matrices of ``keys`` by ``values`` elements.

    Args:
        steps: The number of steps, or an assumed number if it is unknown.
        are_known: True if the number of steps is known.
        heads: The number of independent matrices.
        key_heads: The number of heads with different keys and queries. All further heads share these keys and queries.
        by_key: True if each key has its own decays, False if all keys of a head have the same decay.
        keys: The number of rows of each matrix.
        values: The number of columns of each matrix.
        passes: The number of times that the weights of a block (``block_products``) are read or written.
        wide: The bytes of an element.
    """

    steps: int
    are_known: bool
    heads: int
    key_heads: int
    by_key: bool
    keys: int
    values: int
    passes: int
    wide: int

    @property
    def state_bytes(self) -> int:
        """The number of bytes of the state."""
        return self.wide * self.heads * self.keys * self.values


@dataclass(frozen=True)
class BlockPlan:
    """The length and the layout of blocks of steps.

    Args:
        length: The number of steps in a block.
        is_flat: True for the flat layout (see ``matrix_blocks``).
        ns: The estimated time for all blocks, in ns.
        bytes: The estimated memory of all blocks.
    """

    length: int
    is_flat: bool
    ns: float
    bytes: int


def block_shape(matrix: MatrixState, sizes: StepSizes) -> Shape:
    """Return the sizes of ``matrix``. Unknown sizes are replaced by assumed ones."""
    options = sizes.options

    def size(label: int) -> int:
        known = matrix.axes.size(label)
        return known if isinstance(known, int) else options.sizes.get(known or "", options.assumed_dim)

    return Shape(
        sizes.steps if sizes.steps_known else _USUAL,
        isinstance(sizes.loop.steps, int),
        prod(map(size, matrix.heads)),
        prod(size(label) for label in matrix.heads if label in matrix.keys.named),
        matrix.key is not None and matrix.key in matrix.decay.named,
        1 if matrix.key is None else size(matrix.key),
        prod(map(size, matrix.values)),
        8 if matrix.decay.factors else 2,
        bytes_per_element(matrix.state.inner),
    )


def plan_of(shape: Shape, options: Options) -> BlockPlan:
    """Return the fastest plan within the memory budget, or the fastest of all if the budget allows none."""
    others = range(_LENGTHS[0], _LENGTHS[-1] + 1) if shape.are_known and not shape.by_key else ()
    candidates = {*_LENGTHS, *(length for length in others if shape.steps % length == 0)}
    lengths = [(length, is_flat) for length in sorted(candidates) if length < shape.steps for is_flat in (False, True)]
    if shape.are_known and shape.steps <= _LENGTHS[-1] and not shape.by_key:
        lengths.append((shape.steps, False))
    plans = [_plan(shape, length, options.costs, is_flat=is_flat) for length, is_flat in lengths]
    plans = plans or [_plan(shape, _LENGTHS[0], options.costs, is_flat=False)]
    fitting = [plan for plan in plans if plan.bytes <= options.memory_budget]
    return min(fitting or plans, key=lambda plan: plan.ns)


def fewest_steps(shape: Shape, plan: BlockPlan, nodes: int, options: Options) -> int | None:
    """Return the least number of steps for which ``plan`` is estimated to be a fifth faster than the loop.

    Only the numbers 1, 2, 4, ... times ``plan.length`` are tried. Return None if ``plan`` is a fifth faster for none of them.
    ``nodes``: the number of nodes in the body of the loop.
    """
    steps = plan.length
    while steps < _MANY:
        estimate = _plan(replace(shape, steps=steps), plan.length, options.costs, is_flat=plan.is_flat)
        if estimate.ns * MARGIN < options.costs.loop_ns(steps, nodes, shape.state_bytes):
            return steps
        steps *= 2
    return None


def attention_ns(shape: Shape, costs: Costs) -> float:
    """Return the estimated time in ns of LinearAttention and the nodes that prepare its operands."""
    each = _LONG_PRODUCTS if shape.values >= _LONG_ROW else _SHORT_PRODUCTS
    rows = shape.wide * shape.steps * shape.heads * (2 * shape.keys + shape.values)
    return shape.steps * shape.heads * shape.keys * shape.values * each * costs.product + 2 * rows * costs.far_byte


def _plan(shape: Shape, length: int, costs: Costs, *, is_flat: bool) -> BlockPlan:
    blocks = -(-shape.steps // length)
    steps = blocks * length
    scores = length * shape.key_heads * shape.keys + length * shape.heads * shape.values
    products = steps * (scores + 2 * shape.heads * shape.keys * shape.values)
    rows = shape.wide * steps * (2 * shape.key_heads * shape.keys + shape.heads * shape.values)
    between, states = shape.wide * steps * shape.heads * length, blocks * shape.state_bytes
    nodes, moved = _NODES, (4 + 2 * (shape.steps % length > 0)) * rows + shape.passes * between + 3 * states
    matrices = 2 * blocks * shape.heads
    if shape.by_key:
        levels = length.bit_length() - 1
        nodes, moved = nodes + _LEVEL_NODES * levels, moved + 4 * levels * shape.wide * steps * shape.heads * shape.keys
        matrices += steps * shape.heads // 2
    small = 0.6 + _SHORT / min(length, shape.keys, shape.values)
    around = costs.operator * _AROUND + 2 * rows * costs.near_byte + products * costs.product * small + matrices * costs.node
    if blocks == 1 or is_flat:
        loop = costs.loop_ns(blocks, 3, shape.state_bytes) if blocks > 1 else 0.0
        byte = costs.near_byte if rows < _CACHE else costs.far_byte
        ns = around + loop + costs.operator * nodes + moved * byte
        return BlockPlan(length, is_flat, ns, 3 * (rows + between + states))
    each = costs.step + nodes * (costs.node + costs.operator) / 2
    byte = costs.near_byte if moved // blocks < _CACHE else costs.far_byte
    return BlockPlan(length, is_flat, around + costs.start + blocks * each + moved * byte, 3 * rows)
