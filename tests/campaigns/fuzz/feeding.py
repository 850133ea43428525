"""What a drawn model is fed: at its own sizes, and at 0, 1, 2 and 3 of what is free."""

from collections.abc import Mapping

import numpy as np

from tests.campaigns.fuzz.case import Feeds
from tests.campaigns.fuzz.values import Dim
from tests.campaigns.fuzz.world import Fed, World, numbers

__all__ = ["drawn_feeds"]


def drawn_feeds(world: World) -> list[Feeds]:
    """Several feeds, the first at the sizes that the model was drawn at."""
    seed = world.dice.getrandbits(32)
    feeds = [_feeds(world, world.sizes, seed), _feeds(world, world.sizes, seed + 1)]
    free = [name for name, how in world.declared.items() if how != "static" and name not in world.derived]
    if not free or not any(set(free) & set(fed.value.shape) or fed.kind == "trip" for fed in world.inputs):
        return feeds
    for k in range(4):
        sizes = dict(world.sizes)
        for name in free:
            sizes[name] = world.choose([0, 1, 2, 3] if k else [1, 1, 2, 3])
        feeds.append(_feeds(world, sizes, seed + 2 + k))
    return feeds


def _feeds(world: World, sizes: Mapping[str, int], seed: int) -> Feeds:
    rng = np.random.default_rng(seed)
    return {fed.value.name: _fed(fed, sizes, rng) for fed in world.inputs}


def _fed(fed: Fed, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    def size(dim: Dim) -> int:
        return dim if isinstance(dim, int) else sizes[dim]

    shape = [size(dim) for dim in fed.value.shape]
    if fed.kind == "trip":
        return np.full(shape, size(fed.below), np.int64)
    if fed.kind == "lengths":
        return np.asarray(rng.integers(1, max(size(fed.below), 1) + 1, shape)).astype(fed.value.dtype)
    if fed.kind == "index":
        return np.asarray(rng.integers(0, max(size(fed.below), 1), shape)).astype(np.int64)
    return np.asarray(numbers(rng, fed.value.dtype, shape))
