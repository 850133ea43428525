"""The changes of operators between opsets, a file for each kind of change, with the way up and the way down.

``LIFTING``: (operator, version) -> the conversion that takes it there from the version before.
``LOWERING``: (operator, version) -> the conversion that takes it from there to the version before.

``NodeConversion`` converts operators without an entry as their schemas say.
"""

from rewrites.migration.conversions import alignment, attributes, axes, operands, refusals, resizing, training
from rewrites.migration.step import Rule

__all__ = ["LIFTING", "LOWERING"]

_KINDS = (alignment, attributes, axes, operands, refusals, resizing, training)

LIFTING: dict[tuple[str, int], Rule] = {key: rule for kind in _KINDS for key, rule in kind.LIFTING.items()}
LOWERING: dict[tuple[str, int], Rule] = {key: rule for kind in _KINDS for key, rule in kind.LOWERING.items()}
