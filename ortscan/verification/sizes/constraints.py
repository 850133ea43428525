"""Free dimensions that are one, and the numbers they must or may be."""

from collections.abc import Iterable, Mapping

__all__ = ["Sizes"]

_Known = int | str | None


class Sizes:
    """What is learned of the free dimensions: what must hold (`same`) and what holds unless a 1 is broadcast (`broadcasts`)."""

    def __init__(self) -> None:
        self._certain = _Classes()
        self._likely = _Classes()

    def same(self, one: _Known, other: _Known) -> None:
        """Learn that two sizes are one; of contradictions the first stands."""
        self._certain.join(one, other)
        self._likely.join(one, other)

    def broadcasts(self, one: _Known, other: _Known) -> None:
        """Learn that two sizes are one, unless either is 1."""
        if 1 not in (one, other):
            self._likely.join(one, other)

    def groups(self, names: Iterable[str]) -> list[list[list[str]]]:
        """Group ``names``: dimensions in one group are equal unless broadcast; in one part of a group, equal always."""
        groups: dict[str, dict[str, list[str]]] = {}
        for name in names:
            parts = groups.setdefault(self._likely.root(name), {})
            parts.setdefault(self._certain.root(name), []).append(name)
        return [list(parts.values()) for parts in groups.values()]

    def told(self, names: Iterable[str]) -> list[tuple[list[list[str]], list[int | None]]]:
        """Return all that is known of ``names``: the groups, and the numbers that their parts and they must or may be."""
        return [
            (parts, [*(self.number(part[0]) for part in parts), self.likely_number(parts[0][0])]) for parts in self.groups(names)
        ]

    def allow(self, sizes: Mapping[str, int]) -> bool:
        """Return whether dimensions may have these sizes, as far as is known."""
        for parts, numbers in self.told(sizes):
            found = [{sizes[name] for name in part} for part in parts]
            if any(len(one) > 1 for one in found) or len(set().union(*found, numbers) - {1, None}) > 1:
                return False
            if any(number not in (None, *one) for one, number in zip(found, numbers, strict=False)):
                return False
        return True

    def number(self, name: str) -> int | None:
        """The number a dimension must be, or None."""
        return self._certain.numbers.get(self._certain.root(name))

    def likely_number(self, name: str) -> int | None:
        """The number a dimension is unless it is broadcast, or None."""
        return self._likely.numbers.get(self._likely.root(name))


class _Classes:
    """Names in classes of equals; a class may have a number."""

    def __init__(self) -> None:
        self.parent: dict[str, str] = {}
        self.numbers: dict[str, int] = {}

    def root(self, name: str) -> str:
        while name in self.parent:
            name = self.parent[name]
        return name

    def join(self, one: _Known, other: _Known) -> None:
        if isinstance(one, int):
            one, other = other, one
        if not isinstance(one, str) or other is None:
            return
        root = self.root(one)
        if isinstance(other, int):
            self.numbers.setdefault(root, other)
            return
        target = self.root(other)
        if root != target:
            self.parent[root] = target
            if root in self.numbers:
                self.numbers.setdefault(target, self.numbers.pop(root))
