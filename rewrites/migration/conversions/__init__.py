"""Collects the conversions of operators between opsets, up and down. Each file has one kind of change.

* ``LIFTING`` maps (operator, version) to the conversion from the previous version to that version.
* ``LOWERING`` maps (operator, version) to the conversion from that version to the previous version.

If an operator has no entry, ``NodeConversion`` converts it by comparing its schemas.
"""

from rewrites.migration.conversions import alignment, attributes, axes, operands, refusals, resizing, training
from rewrites.migration.step import Rule

__all__ = ["LIFTING", "LOWERING"]

_KINDS = (alignment, attributes, axes, operands, refusals, resizing, training)

LIFTING: dict[tuple[str, int], Rule] = {key: rule for kind in _KINDS for key, rule in kind.LIFTING.items()}
LOWERING: dict[tuple[str, int], Rule] = {key: rule for kind in _KINDS for key, rule in kind.LOWERING.items()}
