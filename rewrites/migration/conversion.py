"""What a conversion did, for a report."""

from dataclasses import dataclass

__all__ = ["Conversion"]


@dataclass(frozen=True)
class Conversion:
    """One kind of change.

    ``op_type`` went from version ``before`` to version ``after`` of its operator; ``written`` are the operators that stand for it
    now, in order, none where only the version changed; ``count`` nodes were treated like that.
    """

    op_type: str
    before: int
    after: int
    written: tuple[str, ...]
    count: int
