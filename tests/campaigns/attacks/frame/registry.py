"""All attacks there are: each module of the package above is an area, and what it decorates is an attack."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

import tests.campaigns.attacks as package
from tests.campaigns.attacks.frame.box import Box

__all__ = ["Attack", "all_attacks", "attack", "faulty_attacks"]

_NOT_AREAS = ("frame", "__main__")
_FAULTY = "faulty"
_SECONDS, _MEMORY = 60.0, 2 << 30
_found: dict[str, "Attack"] = {}


@dataclass(frozen=True)
class Attack:
    """``memory``: how much of its own the process may have at once."""

    area: str
    what: str
    run: Callable[[Box], None]
    seconds: float
    memory: int

    @property
    def name(self) -> str:
        """Area and what is attacked."""
        return f"{self.area}: {self.what}"


def attack(
    what: str, *, seconds: float = _SECONDS, memory: int = _MEMORY, area: str = ""
) -> Callable[[Callable[[Box], None]], Callable[[Box], None]]:
    """Note a function as an attack of its module's area, or of the module ``area``. ``what`` is unique there."""

    def noted(run: Callable[[Box], None]) -> Callable[[Box], None]:
        module = area or getattr(run, "func", run).__module__
        one = Attack(module.rpartition(".")[2], what, run, seconds, memory)
        assert one.name not in _found, f"two attacks are called {one.name!r}"
        _found[one.name] = one
        return run

    return noted


def all_attacks() -> dict[str, Attack]:
    """Give them by name."""
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in _NOT_AREAS and not module.name.startswith("test_"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    return {name: each for name, each in sorted(_found.items()) if each.area != _FAULTY}


def faulty_attacks() -> dict[str, Attack]:
    """Give those by name that the frame must find fault with."""
    importlib.import_module(f"{package.__name__}.frame.{_FAULTY}")
    return {name: each for name, each in sorted(_found.items()) if each.area == _FAULTY}
