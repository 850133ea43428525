"""How many bytes a body value takes in one step, and for all steps, as far as that is known."""

from dataclasses import dataclass

import onnx_ir as ir

from rewrites.context import Options
from rewrites.loops import ScanView
from rewrites.values import size_estimate

__all__ = ["StepSizes"]


@dataclass(frozen=True)
class StepSizes:
    """Sizes of one loop's values: unknown dimensions come from the hints, or are assumed.

    ``steps``: the trip count, known, hinted or assumed. ``own``: bytes per step of the loop's own scan inputs and outputs; a part
    whose temporaries stay near this needs no more memory than the loop's callers already spend.
    """

    options: Options
    steps: int
    steps_known: bool
    own: int

    @classmethod
    def of(cls, loop: ScanView, options: Options) -> "StepSizes":
        """Measure ``loop``."""
        steps = loop.steps
        known = options.sizes.get(steps) if isinstance(steps, str) else steps
        values = [*(scan.inner for scan in loop.scan_inputs), *(output.inner for output in loop.scan_outputs)]
        own = sum(size_estimate(value, options.sizes, options.assumed_dim) for value in values)
        return cls(options, known or options.assumed_dim, known is not None, max(own, 1))

    def step(self, value: ir.Value) -> int:
        """Give the bytes of ``value`` in one step."""
        return size_estimate(value, self.options.sizes, self.options.assumed_dim)

    def too_large(self, value: ir.Value) -> bool:
        """Whether a stack of ``value`` breaks the memory budget.

        Where the trip count is not known, the loop's own inputs and outputs are the measure: a stack may take 16 times as much.
        """
        one = self.step(value)
        return one * self.steps > self.options.memory_budget or (not self.steps_known and one > 16 * self.own)
