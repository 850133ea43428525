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
            place, ready = waiting.pop()
            if ready:
                order.append(place)
            elif place not in seen:
                seen.add(place)
                waiting.append((place, True))
                waiting += [(needed, False) for needed in needs(place) if needed not in seen]
    return order
