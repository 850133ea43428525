"""The cost per step, in ns, of the parts of a loop, measured with onnxruntime 1.31 on one core of a server CPU.

``base/abilities.py`` has the costs of a node and of an iteration. Passing a value from one loop to another costs 300 ns, plus
50 ns per KB if the stack fits in the L2 cache, else 400 ns plus 100 ns per KB. A product by weights in a loop reads the weights
in every step; outside the loop, one product reads them once for all steps. Reading costs 4, 12 or 40 ns per KB. The rate depends on
the total size of the loop's weights.
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.analysis.cut.sizes import StepSizes

__all__ = ["carrying_ns", "few_rows", "product_ns", "reading_ns", "start_ns", "staying_ns", "to_carry", "weight_bytes"]

_CARRY_NS, _READ_NS = 300, 150
_CACHE = 2 << 20
_NEAR_BYTES_PER_NS, _FAR_BYTES_PER_NS, _FAR_NS = 20, 10, 400
_WEIGHT_RATES = ((1 << 19, 4), (3 << 19, 12), (1 << 60, 40))
"""Pairs (limit, rate): a loop that reads at most ``limit`` bytes of weights per step takes ``rate`` ns per KB."""

_MANY_ROWS = 16
_ASSUMED_ROWS = 4


def to_carry(size: int, sizes: StepSizes) -> int:
    """Return the cost of writing and reading ``size`` bytes per step."""
    if size * sizes.steps <= _CACHE:
        return size // _NEAR_BYTES_PER_NS
    return _FAR_NS + size // _FAR_BYTES_PER_NS


def carrying_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Return the cost of writing ``value`` to a stack in one loop and reading it in another."""
    return _CARRY_NS + to_carry(sizes.step(value), sizes)


def reading_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Return the cost of reading ``value`` in a loop from a stack that already exists."""
    return _READ_NS + to_carry(sizes.step(value), sizes) // 2


def start_ns(sizes: StepSizes) -> int:
    """Return the cost of starting one more loop, divided by the number of steps."""
    return round(sizes.options.costs.start) // max(1, sizes.steps)


def few_rows(node: ir.Node, sizes: StepSizes) -> bool:
    """Return True if ``node`` is a product of few rows per step by weights, so that one product for all steps is faster.

    A product of many rows is as fast in the loop. Any product is as fast in the loop if writing its results for all steps costs
    more time than is saved by reading the weights only once. Unknown sizes count as few rows.
    """
    weights = weight_bytes([node], sizes)
    rows = sizes.rows(node) if weights else None
    if rows is None:
        return bool(weights)
    hidden = max(1, rows) if weights <= _WEIGHT_RATES[0][0] else 1
    saved = sizes.options.costs.node + _reading(weights, weights) // hidden
    return rows < _MANY_ROWS and to_carry(sizes.step(node.outputs[0]), sizes) <= saved


def weight_bytes(nodes: Iterable[ir.Node], sizes: StepSizes) -> int:
    """Return the bytes of the weights that ``nodes`` multiply by."""
    return sum(sum(map(sizes.outside, sizes.weights(node))) for node in nodes)


def product_ns(node: ir.Node, in_loop: int, sizes: StepSizes) -> int:
    """Return the cost of reading the weights of ``node`` in a loop that reads ``in_loop`` bytes of weights per step.

    If the product has several rows, computing hides a part of this cost.
    """
    if not few_rows(node, sizes):
        return 0
    far = in_loop > _WEIGHT_RATES[-2][0]
    return _reading(weight_bytes([node], sizes), in_loop) // (1 if far else max(1, sizes.rows(node) or _ASSUMED_ROWS))


def staying_ns(nodes: Iterable[ir.Node], in_loop: int, sizes: StepSizes) -> int:
    """Return how much more ``nodes`` cost in the loop than outside, where they run once for all steps."""
    each = round(sizes.options.costs.node)
    work = (node for node in nodes if node.op_type not in ("Constant", "Identity"))
    return sum(each + product_ns(node, in_loop, sizes) for node in work)


def _reading(size: int, in_loop: int) -> int:
    return size * next(rate for limit, rate in _WEIGHT_RATES if in_loop <= limit) >> 10
