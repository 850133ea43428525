"""What the graphs of one random model share: the dice, the opset, the sizes, the names, and what is fed."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tests.campaigns.fuzz.values import NARROW, Dim, Val, numpy_type
from tests.support.kernels import has_kernel

__all__ = ["Fed", "World"]

T = TypeVar("T")


@dataclass(frozen=True)
class Fed:
    """A graph input, and what is fed to it: ``lengths`` and ``index`` lie below the size ``below``, ``trip`` is that size."""

    value: Val
    kind: str = "any"
    below: Dim = 2


@dataclass
class World:
    """The state of one drawing. ``sizes`` holds the free sizes; ``seen`` is set for those derived from others."""

    dice: random.Random
    opset: int
    ir_version: int
    real: str
    body_types: str
    sizes: dict[str, int]
    declared: dict[str, str]
    inputs: list[Fed] = field(default_factory=list)
    derived: set[str] = field(default_factory=set)
    features: set[str] = field(default_factory=set)
    count: int = 0
    depth: int = 0

    def choose(self, options: Sequence[T]) -> T:
        return options[self.dice.randrange(len(options))]

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def between(self, low: int, high: int) -> int:
        return self.dice.randint(low, high)

    def name(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def size(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.sizes[dim]

    def sizes_of(self, value: Val) -> tuple[int, ...]:
        return tuple(self.size(dim) for dim in value.shape)

    def derive(self, size: int) -> str:
        """A name for a size that follows from others."""
        name = self.name("d")
        self.sizes[name] = size
        self.derived.add(name)
        return name

    def width(self) -> int:
        return self.choose([1, 2, 2, 3, 3, 4])

    def movable(self) -> list[str]:
        """The types that few operators take, but loops do in this opset."""
        return [
            dtype for dtype in NARROW if has_kernel("Scan", max(self.opset, 8), dtype) and has_kernel("Identity", self.opset, dtype)
        ]

    def feature(self, name: str) -> None:
        self.features.add(name)

    def written(self, dims: Sequence[Dim], exact: bool = True) -> list[int | str | None]:
        """The sizes as the interface declares them."""
        return [self._written(dim) if exact else None for dim in dims]

    def _written(self, dim: Dim) -> int | str | None:
        if isinstance(dim, int):
            return dim
        if dim in self.derived:
            return None
        return {"static": self.sizes[dim], "named": dim, "unsaid": None}[self.declared[dim]]

    def array(self, dtype: str, shape: Sequence[int], scale: float = 1.0) -> np.ndarray:
        return numbers(np.random.default_rng(self.dice.getrandbits(32)), dtype, shape, scale)


WORDS = np.array(["", "a", "bc", "söder", "x y"], dtype=object)


def numbers(rng: np.random.Generator, dtype: str, shape: Sequence[int], scale: float = 1.0) -> Any:
    """Random elements of that type."""
    shape = tuple(shape)
    if dtype == "string":
        return rng.choice(WORDS, size=shape).reshape(shape)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.6)
    if dtype in ("uint2", "uint4", "uint8", "uint16", "uint32", "uint64"):
        return np.asarray(rng.integers(0, 4, shape)).astype(numpy_type(dtype))
    if dtype.startswith("int"):
        return np.asarray(rng.integers(-2, 2, shape)).astype(numpy_type(dtype))
    if rng.random() < 0.3:
        return np.asarray(rng.integers(-8, 9, shape) / 4 * scale).astype(numpy_type(dtype))
    return np.asarray(rng.standard_normal(shape) * scale).astype(numpy_type(dtype))
