"""A depth-first search that returns items in postorder."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

__all__ = ["postorder"]

_Place = TypeVar("_Place", bound=Hashable)


def postorder(roots: Iterable[_Place], needs: Callable[[_Place], Iterable[_Place]]) -> list[_Place]:
    """Return ``roots`` and all items that they need, directly or indirectly. Needed items come first.

    ``needs`` returns the items that an item needs directly. The search is not recursive, so chains of needs may be long.
    """
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
