"""Entries ``ortscan.*`` of SessionOptions that nothing reads, since they are spelled wrongly.

onnxruntime keeps them and tells nobody which there are, so it is asked for what people write in place of the names there are.
"""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ortscan.base.warned import warn
from ortscan.ort.session_entries import entry_of

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["warn_of_mistyped"]

_earlier = threading.Event()


def warn_of_mistyped(options: "ort.SessionOptions | None", prefix: str, names: frozenset[str], *, once: bool = False) -> None:
    """Warn of entries whose names are like one of ``names``; this takes about 20 ms.

    Args:
        options: The SessionOptions that may hold such entries.
        prefix: What all names of entries start with.
        names: The known names.
        once: Do nothing if this process has looked at any SessionOptions before.
    """
    if options is None or (once and _earlier.is_set()):
        return
    _earlier.set()
    for name in sorted(names):
        for other in sorted(set(_slips(name)) - names):
            if entry_of(options, prefix + other) is not None:
                warn(f"the session option {prefix}{other} is not known, perhaps {prefix}{name} was meant")


def _slips(name: str) -> Iterator[str]:
    """Return what may be written in place of ``name``: with hyphens, in other cases, a letter too few, twice, or exchanged."""
    yield from (name.replace("_", "-"), name.replace("_", ""), name.upper(), name.title().replace("_", ""), name + "s", name + "es")
    first, *others = name.split("_")
    yield first + "".join(other.title() for other in others)
    yield from (name[:place] + name[place + 1 :] for place in range(len(name)))
    yield from (name[:place] + name[place] + name[place:] for place in range(len(name)))
    yield from (name[:place] + name[place + 1] + name[place] + name[place + 2 :] for place in range(len(name) - 1))
