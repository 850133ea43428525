"""A property that is computed at its first use and cached.

Up to Python 3.11, each ``functools.cached_property`` has one lock for all objects of its class. So two threads may deadlock:

- One thread computes property ``a`` of a class A, and needs property ``b`` of a class B.
- The other thread computes ``b`` of another object of B, and needs ``a`` of another object of A.

A ``lazy`` property has no lock: both threads may compute the value, and the results are equal.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["lazy"]

_T = TypeVar("_T")


class lazy(Generic[_T]):  # noqa: N801  # used as a decorator, like property
    """Turn a method without arguments into a property that is computed once and cached.

    The class that has the property must not use ``__slots__``: the cached value is stored in the ``__dict__`` of the object.
    """

    def __init__(self, compute: Callable[[Any], _T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> "Self": ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> _T: ...
    def __get__(self, instance: object, owner: type | None = None) -> "Self | _T":
        if instance is None:
            return self
        kept: dict[str, _T] = instance.__dict__
        if self._name not in kept:
            kept[self._name] = self._compute(instance)
        return kept[self._name]
