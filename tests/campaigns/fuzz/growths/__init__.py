"""What can grow in a random body: families of operators, a family a file. A growth finds its operands in sight, or gives None."""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from tests.campaigns.fuzz.scope import Scope
from tests.campaigns.fuzz.values import Val

__all__ = ["GROWTHS", "Growth", "grow"]

Growth = Callable[[Scope], Val | None]


def _all_growths() -> list[Growth]:
    found: list[Growth] = []
    for module in iter_modules(__path__):
        made = import_module(f"{__name__}.{module.name}")
        found += [getattr(made, name) for name in made.__all__]
    return found


GROWTHS: list[Growth] = _all_growths()


def grow(s: Scope, count: int) -> list[Val]:
    """Try ``count`` growths and give the values they made."""
    made = [s.world.choose(GROWTHS)(s) for _ in range(count)]
    return [value for value in made if value is not None]
