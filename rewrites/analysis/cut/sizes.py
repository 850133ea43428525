"""Estimates the bytes of the values of a loop's body, in one step and in all steps.

The size of an unknown dimension comes from a hint of the caller. Without a hint, a default is assumed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from rewrites.analysis.shapes.step_varying import unsteady_values
from rewrites.analysis.unsliced_types import unscanned
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
    """Sizes of the values of one loop. Unknown dimensions come from hints or are assumed.

    Args:
        steps: The trip count (known, hinted or assumed).
        steps_known: True if the trip count is known or hinted.
        own: The bytes per step of the loop's scan inputs and outputs. The caller has memory for these, so temporary values of the
            same size are acceptable.
        stacked: The values that the loop already stacks. A stack of such a value takes no new memory.
        known: The sizes of named dimensions.
    """

    options: Options
    steps: int
    steps_known: bool
    own: int
    stacked: frozenset[ir.Value | None]
    known: Mapping[str, int]
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

    def step(self, value: ir.Value) -> int:
        """Return the number of bytes of ``value`` in one step."""
        return size_estimate(value, self.options.sizes, self.options.assumed_dim)

    def outside(self, value: ir.Value) -> int:
        """Return the number of bytes of a value outside the loop, such as a stack with one row per step."""
        return size_estimate(value, self.known, self.options.assumed_dim)

    def note(self, size: int, values: Iterable[ir.Value]) -> tuple[str, ...]:
        """Return a note for the report: the stacks of ``values`` take ``size`` bytes at a time.

        The note mentions the sizes that were assumed. If ``size`` is 0, return no note.
        """
        if not size:
            return ()
        shapes = [value.shape for value in values]
        dims = [dim for shape in shapes if shape is not None for dim in shape.dims]
        vague = None in shapes or any(not isinstance(dim, int) and dim.value not in self.options.sizes for dim in dims)
        guessed = [] if self.steps_known else [f"{self.steps} steps"]
        guessed += [f"{self.options.assumed_dim} for each unknown size"] if vague else []
        return (f"stacks of about {size} bytes at a time" + (f", assuming {' and '.join(guessed)}" if guessed else ""),)

    def elements(self, value: ir.Value) -> int:
        """Return the number of elements that ``value`` has in one step."""
        return self.step(value) // bytes_per_element(value)

    def hinted(self, value: ir.Value) -> bool:
        """Return True if every dimension of ``value`` has a known or hinted size."""
        if value.shape is None:
            return False
        return all(isinstance(dim, int) or dim.value in self.options.sizes for dim in value.shape.dims)

    def refusal(self, value: ir.Value) -> NotApplicable | None:
        """Return a reason if a stack of ``value`` exceeds the memory budget, else None.

        If the trip count is unknown, also return a reason if one step of ``value`` takes more than 16 times the bytes of the loop's
        scan inputs and outputs in one step.
        """
        if value in self.stacked:
            return None
        row, limit = self.step(value), self.options.memory_budget
        if row * self.steps > limit:
            return NotApplicable(
                "MEMORY-BUDGET", f"'{value.name}' takes about {row} bytes per step, {row * self.steps} in all (limit: {limit})"
            )
        if not self.steps_known and row > 16 * self.own:
            detail = f"'{value.name}' takes about {row} bytes per step, the loop's own inputs and outputs {self.own}"
            return NotApplicable("MEMORY-BUDGET", f"{detail}, for an unknown number of steps")
        return None

    def not_a_stack(self, value: ir.Value) -> NotApplicable | None:
        """Return a reason if a loop cannot scan or stack ``value``, or if its stack exceeds the memory budget.

        Return None if the stack is possible.
        """
        if value in self._unsteady:
            return NotApplicable("DATA-DEPENDENT-SHAPE", f"'{value.name}' may have another shape in another step")
        return unscanned(value) or self.refusal(value)

    @lazy
    def _unsteady(self) -> frozenset[ir.Value]:
        return unsteady_values(self.loop, self.ctx)

    def weights(self, node: ir.Node) -> list[ir.Value]:
        """Return the factors of the matrix product ``node``, but only factors from outside the body.

        If a factor is dequantized, return the quantized tensor instead. If ``node`` is not a product, return an empty list.
        """
        if node.op_type not in _PRODUCTS:
            return []
        factors = map(_stored, node.inputs[:2])
        return [value for value in factors if value is not None and value.graph is not node.graph]

    def rows(self, node: ir.Node) -> int | None:
        """Return the number of rows of the product ``node`` in one step, or None if the number is unknown."""
        result = node.outputs[0]
        if result.shape is None or len(result.shape) == 0 or not self.hinted(result):
            return None
        last = result.shape[-1]
        columns = last if isinstance(last, int) else self.options.sizes[last.value or ""]
        return self.elements(result) // max(1, columns)


def _stored(value: ir.Value | None) -> ir.Value | None:
    node = producer_of(value, "DequantizeLinear")
    return value if node is None else node.inputs[0]
