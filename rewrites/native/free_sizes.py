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

from rewrites.graph.dims import Dim, varies
from rewrites.native.plan import Plan, PlanRefused, Size, Symbol

__all__ = ["SAMPLES", "EqualSizesRequired", "FreeSizes", "merge_samples", "size_name"]

SAMPLES = ((97, 103, 109, 127, 137, 149), (101, 107, 113, 131, 139, 151))
"""The two samples: primes that rarely divide the sizes of models."""
_MOST = 4
_AFTER = ", after the step"


class EqualSizesRequired(Exception):
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
        equalities: Maps the name of a free size to the free size or the number that it must equal.
        numbers: Maps the name of each free size to the number that replaces it.
        symbols: For each free size, an axis of an input that has this size at run time.
        growing: Maps each number that replaces the length of a growing state to a pair: the rows that a step adds, and True for
            the length after the step.
    """

    sample: Sequence[int]
    equalities: Mapping[str, str | int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    symbols: list[Symbol] = field(default_factory=list)
    growing: dict[int, tuple[int, bool]] = field(default_factory=dict)

    def number(self, name: str, symbol: Symbol) -> int:
        """Return the sample number that replaces the size ``name``.

        ``symbol``: an axis of an input that has this size at run time.
        """
        size: str | int = name
        while isinstance(size, str) and size in self.equalities:
            size = self.equalities[size]
        if isinstance(size, int):
            return size
        name = size
        if name not in self.numbers:
            if len(self.numbers) == len(self.sample):
                raise PlanRefused("NATIVE-SHAPE", f"more than {len(self.sample)} sizes are known only at run time")
            self.numbers[name] = self.sample[len(self.numbers)]
            self.symbols.append(symbol)
        return self.numbers[name]

    def growing_numbers(self, name: str, rows: int, state: int, axis: int) -> tuple[int, int]:
        """Return the sample numbers that replace the length of a growing state before and after a step.

        Args:
            name: The length before the first step.
            rows: The number of rows that each step adds.
            state: The index of the state among the inputs of the plan.
            axis: The axis along which the state grows.
        """
        name = f"{name} + {rows} in each step"
        name = str(self.equalities.get(name, name))
        before, after = self.number(name, Symbol(state, axis)), self.number(f"{name}{_AFTER}", Symbol(state, -1 - axis))
        self.growing |= {before: (rows, False), after: (rows, True)}
        return before, after

    def check_same(self, lefts: Sequence[int], rights: Sequence[int]) -> None:
        """Raise EqualSizesRequired if two lists of sizes that must be equal differ in a free size."""
        names = {number: name for name, number in self.numbers.items()}
        for left, right in zip(lefts, rights, strict=False):
            if left != right and self.growing.get(left) != self.growing.get(right):
                raise PlanRefused("NATIVE-SHAPE", "an operator needs two sizes to be equal, and one of them grows")
            if left != right and (left in names or right in names):
                name = names.get(right) or names[left]
                other = names.get(left, left) if right in names else right
                raise EqualSizesRequired(name.removesuffix(_AFTER), other.removesuffix(_AFTER) if isinstance(other, str) else other)

    def depends_on_growing(self, sizes: Sequence[int]) -> bool:
        """Return True if one of ``sizes`` may depend on the length of a growing state."""
        return any(size % number == 0 for size in sizes if size for number in self.growing)

    def is_free(self, size: int) -> bool:
        """Return True if a sample number divides ``size``, so that ``size`` may depend on a free size."""
        return any(size % number == 0 for number in self.numbers.values()) and size != 0

    def sample_factor(self, size: int) -> int:
        """Return the largest divisor of ``size`` that is a product of sample numbers, such as 97 * 97 * 103."""
        factor = 1
        for number in self.numbers.values():
            while size and size % (factor * number) == 0:
                factor *= number
        return factor


def size_name(size: Dim, index: int, axis: int) -> str:
    """Return the name of the size of axis ``axis`` of input ``index`` of a plan."""
    if isinstance(size, int):
        return str(size)
    return size.value if size.value is not None and not varies(size) else f"input {index} axis {axis}"


def merge_samples(first: Plan, second: Plan, symbols: Sequence[Symbol]) -> Plan:
    """Combine the plans for the two samples into a plan for all sizes."""
    plan = _merge(first, second, [sample[: len(symbols)] for sample in SAMPLES])
    assert isinstance(plan, Plan)
    return replace(plan, symbols=tuple(symbols))


def _merge(first: object, second: object, samples: Sequence[Sequence[int]]) -> object:
    if isinstance(first, Size) and isinstance(second, Size):
        return _size_formula(first.coefficient, second.coefficient, samples)
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(_merge(left, right, samples) for left, right in zip(first, second, strict=True))
    if is_dataclass(first) and not isinstance(first, type) and type(first) is type(second):
        parts = {each.name: _merge(getattr(first, each.name), getattr(second, each.name), samples) for each in fields(first)}
        return replace(first, **parts)
    if first != second:
        raise PlanRefused("NATIVE-SHAPE", "the steps depend on sizes that are known only at run time")
    return first


def _size_formula(first_size: int, second_size: int, samples: Sequence[Sequence[int]]) -> Size:
    """Return the formula for a size that is ``first_size`` in one sample, ``second_size`` in the other.

    For example, 388 for the sample (97, ...) and 404 for the sample (101, ...) give ``4 * B`` if B is the first free size. Raise
    PlanRefused if there is no such formula.

    Args:
        first_size: The size for the first sample.
        second_size: The size for the second sample.
        samples: For each sample, the numbers that replace the free sizes.
    """
    exponents = []
    for first_prime, second_prime in zip(*samples, strict=True):
        power = 0
        while first_size and first_size % first_prime == 0 and second_size % second_prime == 0 and power < _MOST:
            first_size, second_size, power = first_size // first_prime, second_size // second_prime, power + 1
        exponents.append(power)
    if first_size != second_size:
        raise PlanRefused("NATIVE-SHAPE", "an address depends in a complex way on sizes that are known only at run time")
    return Size(first_size, tuple(exponents) if any(exponents) else ())
