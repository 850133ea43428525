"""``patched``: lets code one does not own make ortscan's sessions where it makes onnxruntime's."""

import abc
import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ortscan.base.forks import ForkSafeLock

__all__ = ["patched"]

_lock = ForkSafeLock()
_active: list[type] = []


class _StandIn(abc.ABCMeta):
    """Makes a class that stands for another that other's equal for ``isinstance`` and ``issubclass``; not so classes made from it.

    It is an ABCMeta so that abstract classes can be made from it too.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        other = vars(cls).get("_ortscan_stands_for")
        return super().__instancecheck__(instance) if other is None else isinstance(instance, other)

    def __subclasscheck__(cls, subclass: type) -> bool:
        other = vars(cls).get("_ortscan_stands_for")
        return super().__subclasscheck__(subclass) if other is None else issubclass(subclass, other)


@contextlib.contextmanager
def patched(**options: Any) -> Iterator[type]:
    """Put ``ortscan.InferenceSession`` in the place of ``onnxruntime.InferenceSession`` while the block runs, in all threads.

    Modules that imported the class by name get the other one too, until the end of the block. ``options`` are those of a session
    (``target="cuda"``, ``strict=True``, ``cache=False``, …) for SessionOptions that do not say otherwise. Blocks may be nested; the
    innermost counts, the last to be entered where threads overlap. Raises OptionError for an option there is not.
    """
    from ortscan.session.inference_session import InferenceSession
    from ortscan.session.running import Running
    from ortscan.session.settings import spelled

    original = Running.__mro__[1]

    class PatchedSession(InferenceSession, metaclass=_StandIn):
        __doc__ = InferenceSession.__doc__
        _ortscan_defaults = spelled(options)
        _ortscan_stands_for = original

    PatchedSession.__name__ = PatchedSession.__qualname__ = "InferenceSession"
    with _lock:
        _exchange(_active[-1] if _active else original, PatchedSession)
        _active.append(PatchedSession)
    try:
        yield PatchedSession
    finally:
        with _lock:
            was_last = _active[-1] is PatchedSession
            _active.remove(PatchedSession)
            if was_last:
                _exchange(PatchedSession, _active[-1] if _active else original)


def _exchange(old: type, new: type) -> None:
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or _is_off_limits(module.__name__):
            continue
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def _is_off_limits(module: str) -> bool:
    """Whether a module makes sessions of its own, or is where the class comes from."""
    return module.partition(".")[0] == "ortscan" or module.startswith("onnxruntime.")
