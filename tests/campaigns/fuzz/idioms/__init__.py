"""What loops compute: one idiom, or a family, a file. An idiom is given a scope and the sizes of rows, and makes a Recurrence."""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from tests.campaigns.fuzz.recurrence import Recurrence
from tests.campaigns.fuzz.values import Dim
from tests.campaigns.fuzz.world import World

__all__ = ["IDIOMS", "Idiom"]

Idiom = Callable[[World, tuple[Dim, ...]], Recurrence]


def _all_idioms() -> dict[str, Idiom]:
    found: dict[str, Idiom] = {}
    for module in iter_modules(__path__):
        made = import_module(f"{__name__}.{module.name}")
        found.update({name: getattr(made, name) for name in made.__all__})
    return dict(sorted(found.items()))


IDIOMS: dict[str, Idiom] = _all_idioms()
