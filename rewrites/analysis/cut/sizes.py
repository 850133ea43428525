"""Estimates the bytes of the values of a loop's body, in one step and in all steps.

The size of an unknown dimension comes from a hint of the caller. Without a hint, a default is assumed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.shapes.step_varying import unsteady_values
from rewrites.analysis.unsliced_types import unscannable
from rewrites.base.lazy import lazy
from rewrites.base.not_applicable import NotApplicable
from rewrites.graph.context import Context, Options
from rewrites.graph.marks import ASSUMED_SIZE
from rewrites.graph.values import bytes_per_element, producer_of, size_estimate, through_identity
from rewrites.loops import ScanView

__all__ = ["StepSizes"]

_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "Einsum", "MatMulInteger", "FusedMatMul", "FusedGemm"})


@dataclass(frozen=True)
class StepSizes:
    """The sizes of the values of one loop. Hints or assumed sizes replace unknown dimensions.

    Args:
        steps: The trip count (known, hinted or assumed).
        steps_known: True if the trip count is known or hinted.
        io_bytes: The number of bytes that the loop's scan inputs and outputs take per step. The caller has memory for them, so
            temporary values of the same size are acceptable.
        already_stacked: The values that the loop already stacks. Stacking one of these values takes no additional memory.
        named_sizes: The sizes of named dimensions.
    """

    options: Options
    steps: int
    steps_known: bool
    io_bytes: int
    already_stacked: frozenset[ir.Value | None]
    named_sizes: Mapping[str, int]
    loop: ScanView
    ctx: Context

    @classmethod
    def of(cls, loop: ScanView, ctx: Context) -> "StepSizes":
        """Return the sizes of ``loop``."""
        assumed = ASSUMED_SIZE.of(loop.node)
        options = ctx.options if assumed is None else replace(ctx.options, assumed_dim=assumed)
        steps = loop.steps
        known = options.sizes.get(steps) if isinstance(steps, str) else steps
        values = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
        own = sum(size_estimate(value, options.sizes, options.assumed_dim) for value in values)
        stacked = {inner for output in loop.scan_outputs for inner in (output.inner, through_identity(output.inner))}
        count = known or options.assumed_dim
        names = {**options.sizes, steps: count} if isinstance(steps, str) else options.sizes
        return cls(options, count, known is not None, max(own, 1), frozenset(stacked), names, loop, ctx)

    def step_bytes(self, value: ir.Value) -> int:
        """Return the number of bytes of ``value`` in one step."""
        return size_estimate(value, self.options.sizes, self.options.assumed_dim)

    def outer_bytes(self, value: ir.Value) -> int:
        """Return the number of bytes of ``value``, which is outside the loop, such as a stack of all steps."""
        return size_estimate(value, self.named_sizes, self.options.assumed_dim)

    def memory_note(self, stack_bytes: int, values: Iterable[ir.Value]) -> tuple[str, ...]:
        """Return a note for the report about the memory that the stacks of ``values`` take.

        The note contains ``stack_bytes``, and the sizes that were assumed to compute it.

        Returns:
            A tuple with the note. An empty tuple if ``stack_bytes`` is 0.
        """
        if not stack_bytes:
            return ()
        shapes = [value.shape for value in values]
        dims = [dim for shape in shapes if shape is not None for dim in shape.dims]
        vague = None in shapes or any(not isinstance(dim, int) and dim.value not in self.options.sizes for dim in dims)
        guessed = [] if self.steps_known else [f"{self.steps} steps"]
        guessed += [f"{self.options.assumed_dim} for each unknown size"] if vague else []
        return (f"stacks of about {stack_bytes} bytes at a time" + (f", assuming {' and '.join(guessed)}" if guessed else ""),)

    def step_elements(self, value: ir.Value) -> int:
        """Return the number of elements that ``value`` has in one step."""
        return self.step_bytes(value) // bytes_per_element(value)

    def has_known_size(self, value: ir.Value) -> bool:
        """Return True if every dimension of ``value`` has a known or hinted size."""
        if value.shape is None:
            return False
        return all(isinstance(dim, int) or dim.value in self.options.sizes for dim in value.shape.dims)

    def over_budget(self, value: ir.Value) -> NotApplicable | None:
        """Return a reason if a stack of ``value`` exceeds the memory budget, else None.

        If the trip count is unknown, the stack also exceeds the budget if one row of it (the value in one step) has more than 16
        times as many bytes as the loop's scan inputs and outputs in one step.
        """
        if value in self.already_stacked:
            return None
        row, limit = self.step_bytes(value), self.options.memory_budget
        if row * self.steps > limit:
            return NotApplicable(
                "MEMORY-BUDGET", f"'{value.name}' takes about {row} bytes per step, {row * self.steps} in all (limit: {limit})"
            )
        if not self.steps_known and row > 16 * self.io_bytes:
            detail = f"'{value.name}' takes about {row} bytes per step, the loop's own inputs and outputs {self.io_bytes}"
            return NotApplicable("MEMORY-BUDGET", f"{detail}, for an unknown number of steps")
        return None

    def stack_obstacle(self, value: ir.Value) -> NotApplicable | None:
        """Return a reason if no loop can scan or stack ``value``, or if its stack exceeds the memory budget.

        Return None if there is no such obstacle.
        """
        if value in self._unsteady_values:
            return NotApplicable("DATA-DEPENDENT-SHAPE", f"'{value.name}' may have another shape in another step")
        return unscannable(value) or self.over_budget(value)

    @lazy
    def _unsteady_values(self) -> frozenset[ir.Value]:
        return unsteady_values(self.loop, self.ctx)

    def weights_of(self, node: ir.Node) -> list[ir.Value]:
        """Return the weights that the matrix product ``node`` reads: its factors from outside the body.

        If a factor is the result of a DequantizeLinear, the weight is the quantized tensor. If ``node`` is not a product, return an
        empty list.
        """
        if node.op_type not in _PRODUCTS:
            return []
        factors = map(_stored, node.inputs[:2])
        return [value for value in factors if value is not None and value.graph is not node.graph]

    def product_rows(self, node: ir.Node) -> int | None:
        """Return the number of rows of the product ``node`` in one step, or None if the number is unknown."""
        result = node.outputs[0]
        if result.shape is None or len(result.shape) == 0 or not self.has_known_size(result):
            return None
        last = result.shape[-1]
        columns = last if isinstance(last, int) else self.options.sizes[last.value or ""]
        return self.step_elements(result) // max(1, columns)


def _stored(factor: ir.Value | None) -> ir.Value | None:
    node = producer_of(factor, "DequantizeLinear")
    return factor if node is None else node.inputs[0]
