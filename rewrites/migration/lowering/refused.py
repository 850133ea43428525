"""What an older version cannot say although its schema looks the same, and is not worth several nodes.

GroupNormalization before 21 scales whole groups; BatchNormalization before 14 trains where it has more than one output.
"""

from rewrites.migration.lifting.batch_normalization import only_inference
from rewrites.migration.step import Step
from rewrites.migration.unconvertible import Unconvertible

__all__ = ["not_in_training", "refuse"]


def refuse(step: Step) -> None:
    """Refuse whatever the node says."""
    raise Unconvertible("the version before it means something else")


def not_in_training(step: Step) -> None:
    """Refuse a node that trains."""
    if step.int_("training_mode", 0):
        raise Unconvertible("it is in training mode")
    only_inference(step)
