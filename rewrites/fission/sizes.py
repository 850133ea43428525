"""How many bytes a body value takes in one step, and for all steps, as far as that is known."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.context import Options
from rewrites.loops import ScanView
from rewrites.not_applicable import NotApplicable
from rewrites.values import bytes_per_element, size_estimate, through_identity

__all__ = ["StepSizes"]

_PRODUCTS = frozenset({"MatMul", "Gemm", "Conv", "Einsum", "MatMulInteger", "FusedMatMul", "FusedGemm"})
_MANY_ROWS = 16


@dataclass(frozen=True)
class StepSizes:
    """Sizes of one loop's values: unknown dimensions come from the hints, or are assumed.

    ``steps``: the trip count, known, hinted or assumed. ``own``: bytes per step of the loop's own scan inputs and outputs; a part
    whose temporaries stay near this needs no more memory than the loop's callers already spend. ``stacked``: the values that the
    loop stacks itself, so that a stack of one is nothing new.
    """

    options: Options
    steps: int
    steps_known: bool
    own: int
    stacked: frozenset[ir.Value | None]

    @classmethod
    def of(cls, loop: ScanView, options: Options) -> "StepSizes":
        """Measure ``loop``."""
        steps = loop.steps
        known = options.sizes.get(steps) if isinstance(steps, str) else steps
        values = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
        own = sum(size_estimate(value, options.sizes, options.assumed_dim) for value in values)
        stacked = {one for output in loop.scan_outputs for one in (output.inner, through_identity(output.inner))}
        return cls(options, known or options.assumed_dim, known is not None, max(own, 1), frozenset(stacked))

    def step(self, value: ir.Value) -> int:
        """Give the bytes of ``value`` in one step."""
        return size_estimate(value, self.options.sizes, self.options.assumed_dim)

    def elements(self, value: ir.Value) -> int:
        """Give the number of elements of ``value``."""
        return self.step(value) // bytes_per_element(value)

    def hinted(self, value: ir.Value) -> bool:
        """Whether every dimension of ``value`` is a number or has a hint."""
        if value.shape is None:
            return False
        return all(isinstance(dim, int) or dim.value in self.options.sizes for dim in value.shape.dims)

    def refusal(self, value: ir.Value) -> NotApplicable | None:
        """Say so where a stack of ``value`` breaks the memory budget.

        Where the trip count is not known, the loop's own inputs and outputs are the measure: a stack may take 16 times as much.
        """
        if value in self.stacked:
            return None
        one, limit = self.step(value), self.options.memory_budget
        if one * self.steps > limit:
            return NotApplicable(
                "MEMORY-BUDGET", f"'{value.name}' takes about {one} bytes a step, {one * self.steps} in all (limit {limit})"
            )
        if not self.steps_known and one > 16 * self.own:
            detail = f"'{value.name}' takes about {one} bytes a step, the loop's own inputs and outputs {self.own}"
            return NotApplicable("MEMORY-BUDGET", f"{detail}, for a number of steps that is not known")
        return None

    def few_rows(self, node: ir.Node) -> bool:
        """Whether ``node`` multiplies few rows a step by weights, which all steps at once would read only once.

        With many rows a step, a product is as fast in the loop. Rows of sizes that are not known count as few.
        """
        if node.op_type not in _PRODUCTS or not any(
            value is not None and value.graph is not node.graph for value in node.inputs[:2]
        ):
            return False
        result = node.outputs[0]
        if result.shape is None or len(result.shape) == 0 or not self.hinted(result):
            return True
        columns = result.shape[-1] if isinstance(result.shape[-1], int) else self.options.sizes[result.shape[-1].value or ""]
        return self.elements(result) < _MANY_ROWS * columns
