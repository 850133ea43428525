"""Handles sizes that are known only at run time (free sizes).

During compilation, a prime number replaces each free size. A body is compiled twice, with different primes: the two samples. Each
size in the plan then becomes a formula that is right for both samples. If there is no such formula, the loop gets no plan:

    388 if B is 97, 404 if B is 101   ->   4 * B
    100 if B is 97, 104 if B is 101   ->   no plan

Translators refuse an operator if a decision depends on a free size. If an operator requires two sizes to be equal, the plan
requires this too. If the sizes differ in a run, the plan fails, as the operator would.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace

from rewrites.native.plan import Plan, PlanRefused, Size, Symbol

__all__ = ["SAMPLES", "FreeSizes", "SameSizes", "joined"]

SAMPLES = ((97, 103, 109, 127, 137, 149), (101, 107, 113, 131, 139, 151))
"""The two samples: primes that rarely divide the sizes of models."""
_MOST = 4


class SameSizes(Exception):
    """Raised if an operator requires the free size ``name`` to equal ``other``.

    ``other`` is a number or another free size. The body is then compiled again with the same number for both.
    """

    def __init__(self, name: str, other: str | int) -> None:
        super().__init__(f"'{name}' is {other}")
        self.name, self.other = name, other


@dataclass
class FreeSizes:
    """The free sizes of a loop, and the numbers that replace them during compilation.

    Args:
        sample: The prime numbers that are available to replace free sizes.
        known: Maps the name of a free size to the free size or the number that it must equal.
        numbers: Maps the name of each free size to the number that replaces it.
        symbols: For each free size, an axis of an input that has this size at run time.
    """

    sample: Sequence[int]
    known: Mapping[str, str | int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    symbols: list[Symbol] = field(default_factory=list)

    def number(self, name: str, symbol: Symbol) -> int:
        """Return the sample number that replaces the size ``name``.

        ``symbol``: an axis of an input that has this size at run time.
        """
        size: str | int = name
        while isinstance(size, str) and size in self.known:
            size = self.known[size]
        if isinstance(size, int):
            return size
        name = size
        if name not in self.numbers:
            if len(self.numbers) == len(self.sample):
                raise PlanRefused("NATIVE-SHAPE", f"more than {len(self.sample)} sizes are known only at run time")
            self.numbers[name] = self.sample[len(self.numbers)]
            self.symbols.append(symbol)
        return self.numbers[name]

    def check_same(self, lefts: Sequence[int], rights: Sequence[int]) -> None:
        """Compare two lists of sizes that must be equal. Raise SameSizes if they differ in a free size."""
        names = {number: name for name, number in self.numbers.items()}
        for left, right in zip(lefts, rights, strict=False):
            if left != right and (left in names or right in names):
                name = names.get(right) or names[left]
                raise SameSizes(name, names.get(left, left) if right in names else right)

    def has(self, size: int) -> bool:
        """Return True if ``size`` may depend on a free size, that is, if a sample number divides ``size``."""
        return any(size % number == 0 for number in self.numbers.values()) and size != 0

    def part(self, size: int) -> int:
        """Return the largest divisor of ``size`` that is a product of sample numbers, such as 97 * 97 * 103."""
        part = 1
        for number in self.numbers.values():
            while size and size % (part * number) == 0:
                part *= number
        return part


def joined(first: Plan, second: Plan, symbols: Sequence[Symbol]) -> Plan:
    """Combine the plans for the two samples into a plan for all sizes."""
    plan = _joined(first, second, [sample[: len(symbols)] for sample in SAMPLES])
    assert isinstance(plan, Plan)
    return replace(plan, symbols=tuple(symbols))


def _joined(one: object, other: object, samples: Sequence[Sequence[int]]) -> object:
    if isinstance(one, Size) and isinstance(other, Size):
        return _size(one.coefficient, other.coefficient, samples)
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(_joined(left, right, samples) for left, right in zip(one, other, strict=True))
    if is_dataclass(one) and not isinstance(one, type) and type(one) is type(other):
        parts = {each.name: _joined(getattr(one, each.name), getattr(other, each.name), samples) for each in fields(one)}
        return replace(one, **parts)
    if one != other:
        raise PlanRefused("NATIVE-SHAPE", "the steps depend on sizes that are known only at run time")
    return one


def _size(one: int, other: int, samples: Sequence[Sequence[int]]) -> Size:
    """Return a formula in the free sizes for a size that differs between the samples.

    For example, ``one`` = 388 and ``other`` = 404 for the samples (97, ...) and (101, ...) give 4 times the first free size. Raise
    PlanRefused if there is no such formula.

    Args:
        one: The size for the first sample.
        other: The size for the second sample.
        samples: For each sample, the numbers that replace the free sizes.
    """
    exponents = []
    for first, second in zip(*samples, strict=True):
        power = 0
        while one and one % first == 0 and other % second == 0 and power < _MOST:
            one, other, power = one // first, other // second, power + 1
        exponents.append(power)
    if one != other:
        raise PlanRefused("NATIVE-SHAPE", "an address depends in a complex way on sizes that are known only at run time")
    return Size(one, tuple(exponents) if any(exponents) else ())
