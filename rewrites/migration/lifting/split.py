"""The sizes of Split: an input that has to be constant in version 1, an attribute in 2, an input in 13; ``num_outputs`` in 18.

1 -> 2    Split (x, [2, 3])                ->  Split <split = [2, 3]> (x)
2 -> 13   Split <split = [2, 3]> (x)       ->  Split (x, [2, 3])
13 -> 18  Split (x) => (a, b)              ->  Split <num_outputs = 2> (x) => (a, b)
"""

from collections.abc import Sequence

import onnx_ir as ir

from rewrites.migration.step import Step

__all__ = ["say_number", "sizes_to_attribute", "sizes_to_input"]


def sizes_to_attribute(step: Step) -> Sequence[ir.Value] | None:
    """1 -> 2, and 13 -> 12."""
    sizes = step.constant(1, "sizes")
    if sizes is None:
        return None
    return step.like([step.required(0)], split=[int(size) for size in sizes.reshape(-1)])


def sizes_to_input(step: Step) -> Sequence[ir.Value] | None:
    """2 -> 13."""
    sizes = step.ints("split")
    if sizes is None:
        return None
    return step.like([step.required(0), step.builder.const(sizes)] if sizes else None, split=None)


def say_number(step: Step) -> Sequence[ir.Value] | None:
    """13 -> 18."""
    return step.like(num_outputs=len(step.node.outputs)) if step.value(1) is None else None
