"""A depth-first search that gives what is reached after all that it needs."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

__all__ = ["postorder"]

_Place = TypeVar("_Place", bound=Hashable)


def postorder(roots: Iterable[_Place], needs: Callable[[_Place], Iterable[_Place]]) -> list[_Place]:
    """Return what is reached from ``roots``, each after what it ``needs``; without recursion, for chains may be long."""
    order: list[_Place] = []
    seen: set[_Place] = set()
    for root in roots:
        waiting = [(root, False)]
        while waiting:
            item, ready = waiting.pop()
            if ready:
                order.append(item)
            elif item not in seen:
                seen.add(item)
                waiting.append((item, True))
                waiting += [(needed, False) for needed in needs(item) if needed not in seen]
    return order
