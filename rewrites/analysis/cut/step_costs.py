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

__all__ = [
    "transfer_ns",
    "has_few_rows",
    "product_ns",
    "stack_read_ns",
    "loop_start_ns",
    "saved_ns",
    "move_ns",
    "weight_bytes",
]

_CARRY_NS, _READ_NS = 300, 150
_CACHE = 2 << 20
_NEAR_BYTES_PER_NS, _FAR_BYTES_PER_NS, _FAR_NS = 20, 10, 400
_WEIGHT_RATES = ((1 << 19, 4), (3 << 19, 12), (1 << 60, 40))
"""Pairs (limit, rate): a loop that reads at most ``limit`` bytes of weights per step takes ``rate`` ns per KB."""

_MANY_ROWS = 16
_ASSUMED_ROWS = 4


def move_ns(step_bytes: int, sizes: StepSizes) -> int:
    """Return the time per step to write ``step_bytes`` bytes to a stack and to read them again, in ns."""
    if step_bytes * sizes.steps <= _CACHE:
        return step_bytes // _NEAR_BYTES_PER_NS
    return _FAR_NS + step_bytes // _FAR_BYTES_PER_NS


def transfer_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Return the time per step to write ``value`` to a stack in one loop and to read it in another loop."""
    return _CARRY_NS + move_ns(sizes.step_bytes(value), sizes)


def stack_read_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Return the time per step to read ``value`` from a stack.

    The time to write the stack does not count, because the stack exists in any case.
    """
    return _READ_NS + move_ns(sizes.step_bytes(value), sizes) // 2


def loop_start_ns(sizes: StepSizes) -> int:
    """Return the time to start one more loop, as ns per step of the loop."""
    return round(sizes.options.costs.start) // max(1, sizes.steps)


def has_few_rows(node: ir.Node, sizes: StepSizes) -> bool:
    """Return True if ``node`` multiplies so few rows by weights that it runs faster outside the loop.

    Outside the loop, one product for all steps reads the weights only once. Nothing is gained if a step has many rows, or if
    writing the results of all steps takes longer than reading the weights in every step. If the number of rows is unknown, return
    True. If ``node`` reads no weights, return False.
    """
    weights = weight_bytes([node], sizes)
    rows = sizes.product_rows(node) if weights else None
    if rows is None:
        return bool(weights)
    hidden = max(1, rows) if weights <= _WEIGHT_RATES[0][0] else 1
    saved = sizes.options.costs.node + _reading(weights, weights) // hidden
    return rows < _MANY_ROWS and move_ns(sizes.step_bytes(node.outputs[0]), sizes) <= saved


def weight_bytes(nodes: Iterable[ir.Node], sizes: StepSizes) -> int:
    """Return the total number of bytes of the weights in the products among ``nodes``."""
    return sum(sum(map(sizes.outer_bytes, sizes.weights_of(node))) for node in nodes)


def product_ns(node: ir.Node, loop_weight_bytes: int, sizes: StepSizes) -> int:
    """Return the time per step that the product ``node`` needs to read its weights in a loop.

    If the product has several rows, the CPU computes while it reads. Therefore only a part of the time counts. If ``has_few_rows``
    returns False, the time is 0.

    Args:
        node: The product.
        loop_weight_bytes: The number of bytes of all weights that the loop reads per step.
        sizes: The sizes of the loop's values.
    """
    if not has_few_rows(node, sizes):
        return 0
    far = loop_weight_bytes > _WEIGHT_RATES[-2][0]
    return _reading(weight_bytes([node], sizes), loop_weight_bytes) // (
        1 if far else max(1, sizes.product_rows(node) or _ASSUMED_ROWS)
    )


def saved_ns(nodes: Iterable[ir.Node], loop_weight_bytes: int, sizes: StepSizes) -> int:
    """Return the time per step that is saved if ``nodes`` run once for all steps instead of in the loop.

    Args:
        nodes: Nodes of the loop's body.
        loop_weight_bytes: The number of bytes of all weights that the loop reads per step.
        sizes: The sizes of the loop's values.
    """
    each = round(sizes.options.costs.node)
    work = (node for node in nodes if node.op_type not in ("Constant", "Identity"))
    return sum(each + product_ns(node, loop_weight_bytes, sizes) for node in work)


def _reading(weight_bytes: int, loop_weight_bytes: int) -> int:
    return weight_bytes * next(rate for limit, rate in _WEIGHT_RATES if loop_weight_bytes <= limit) >> 10
