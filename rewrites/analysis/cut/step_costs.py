"""Estimates the time per step of the parts of a loop, in ns.

The numbers were measured with onnxruntime 1.31 on one core of a server CPU. ``base/abilities.py`` has the costs of a node and of
an iteration. This module adds two costs:

- Passing a value from one loop to another through a stack: 300 ns plus 50 ns per KB if the stack fits in the L2 cache, else 700 ns
  plus 100 ns per KB.
- Reading the weights of a matrix product: 4 ns per KB if all weights that the loop reads have at most 0.5 MB in total, 12 ns up to
  1.5 MB, and 40 ns beyond. A product in a loop reads its weights in every step. A product outside the loop reads them only once.
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
    """Return the time to write ``size`` bytes per step to a stack and to read them again."""
    if size * sizes.steps <= _CACHE:
        return size // _NEAR_BYTES_PER_NS
    return _FAR_NS + size // _FAR_BYTES_PER_NS


def carrying_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Return the time per step to write ``value`` to a stack in one loop and read it in another."""
    return _CARRY_NS + to_carry(sizes.step(value), sizes)


def reading_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Return the time per step to read ``value`` in a loop from a stack. The stack exists in any case."""
    return _READ_NS + to_carry(sizes.step(value), sizes) // 2


def start_ns(sizes: StepSizes) -> int:
    """Return the time to start one more loop, divided by the number of steps."""
    return round(sizes.options.costs.start) // max(1, sizes.steps)


def few_rows(node: ir.Node, sizes: StepSizes) -> bool:
    """Return True if ``node`` multiplies few rows by weights, and runs faster outside the loop.

    Outside the loop, one product for all steps reads the weights only once. This gains nothing if there are many rows per step, or
    if writing the results of all steps takes longer than reading the weights in every step. An unknown number of rows counts as
    few.
    """
    weights = weight_bytes([node], sizes)
    rows = sizes.rows(node) if weights else None
    if rows is None:
        return bool(weights)
    hidden = max(1, rows) if weights <= _WEIGHT_RATES[0][0] else 1
    saved = sizes.options.costs.node + _reading(weights, weights) // hidden
    return rows < _MANY_ROWS and to_carry(sizes.step(node.outputs[0]), sizes) <= saved


def weight_bytes(nodes: Iterable[ir.Node], sizes: StepSizes) -> int:
    """Return the total number of bytes of the weights in the products among ``nodes``."""
    return sum(sum(map(sizes.outside, sizes.weights(node))) for node in nodes)


def product_ns(node: ir.Node, in_loop: int, sizes: StepSizes) -> int:
    """Return the time per step to read the weights of the product ``node`` in a loop.

    If the product has several rows, a part of this time does not count, because the CPU computes meanwhile. With many rows (see
    `few_rows`), the time is 0.

    Args:
        node: The product.
        in_loop: The number of bytes of all weights that the loop reads per step.
        sizes: The sizes of the loop's values.
    """
    if not few_rows(node, sizes):
        return 0
    far = in_loop > _WEIGHT_RATES[-2][0]
    return _reading(weight_bytes([node], sizes), in_loop) // (1 if far else max(1, sizes.rows(node) or _ASSUMED_ROWS))


def staying_ns(nodes: Iterable[ir.Node], in_loop: int, sizes: StepSizes) -> int:
    """Return how many ns per step are saved if ``nodes`` run once for all steps instead of in the loop.

    Args:
        nodes: The nodes.
        in_loop: The number of bytes of all weights that the loop reads per step.
        sizes: The sizes of the loop's values.
    """
    each = round(sizes.options.costs.node)
    work = (node for node in nodes if node.op_type not in ("Constant", "Identity"))
    return sum(each + product_ns(node, in_loop, sizes) for node in work)


def _reading(size: int, in_loop: int) -> int:
    return size * next(rate for limit, rate in _WEIGHT_RATES if in_loop <= limit) >> 10
