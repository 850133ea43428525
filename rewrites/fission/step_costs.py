"""What the parts of a loop cost in each step, in ns; onnxruntime 1.31 on one core of a server CPU, measured.

A node takes about 250 ns to start, a loop 1000 ns for each iteration, and a value that one loop hands to another 300 ns and its
bytes. A product of few rows by weights costs the reading of the weights, which all steps at once would do once: about 12 ns a
KB from the processor's second cache, shared by the rows; 40 ns a KB where the weights of all products in the loop do not fit there.
"""

from collections.abc import Iterable

import onnx_ir as ir

from rewrites.fission.sizes import StepSizes

__all__ = ["LOOP_NS", "NODE_NS", "carrying_ns", "product_ns", "start_ns", "weight_bytes"]

NODE_NS = 250
LOOP_NS = 1000
_CARRY_NS = 300
_START_NS = 8000
_CARRIED_BYTES_PER_NS = 5
_CACHED_NS_PER_KB = 12
_FAR_NS_PER_KB = 40
_CACHE = 2 << 20
_ASSUMED_ROWS = 4


def carrying_ns(value: ir.Value, sizes: StepSizes) -> int:
    """Give what it costs to write ``value`` to a stack in one loop and to read it in another."""
    return _CARRY_NS + sizes.step(value) // _CARRIED_BYTES_PER_NS


def start_ns(sizes: StepSizes) -> int:
    """Give what it costs to start one more loop, spread over the steps."""
    return _START_NS // max(1, sizes.steps)


def weight_bytes(nodes: Iterable[ir.Node], sizes: StepSizes) -> int:
    """Give the bytes of the weights that ``nodes`` multiply by."""
    return sum(sum(map(sizes.outside, sizes.weights(node))) for node in nodes)


def product_ns(node: ir.Node, in_loop: int, sizes: StepSizes) -> int:
    """Give what reading the weights of ``node`` costs, in a loop that reads ``in_loop`` bytes of weights."""
    if not sizes.few_rows(node):
        return 0
    size = weight_bytes([node], sizes)
    if in_loop > _CACHE:
        return size * _FAR_NS_PER_KB >> 10
    return (size * _CACHED_NS_PER_KB >> 10) // max(1, sizes.rows(node) or _ASSUMED_ROWS)
