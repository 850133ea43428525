"""Make third-party code create ortscan's sessions instead of onnxruntime's (see ``patched``)."""

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
    """The metaclass of the class that replaces ``onnxruntime.InferenceSession``.

    ``isinstance(x, replacement)`` and ``issubclass(x, replacement)`` return the same as for onnxruntime's class. For classes
    derived from the replacement, both functions work as usual. The metaclass is derived from ABCMeta, so that derived classes may
    be abstract.
    """

    def __instancecheck__(cls, instance: Any) -> bool:
        other = vars(cls).get("_ortscan_replaces")
        return super().__instancecheck__(instance) if other is None else isinstance(instance, other)

    def __subclasscheck__(cls, subclass: type) -> bool:
        other = vars(cls).get("_ortscan_replaces")
        return super().__subclasscheck__(subclass) if other is None else issubclass(subclass, other)


@contextlib.contextmanager
def patched(**options: Any) -> Iterator[type]:
    """Replace ``onnxruntime.InferenceSession`` by ``ortscan.InferenceSession`` while the block runs.

        with ortscan.patched(target="cuda"):
            third_party.load("model.onnx")

    The class is replaced in all threads, and also in modules that have imported it by name. If several ``patched`` blocks are
    active at the same time, nested or in different threads, the options of the block that was entered last apply.

    Args:
        options: the options of all sessions that are created, such as ``target="cuda"``, ``strict=True`` or ``cache=False``. If the
            SessionOptions of a session have an entry for the same option, the entry applies.

    Raises:
        OptionError: an option is unknown, or has an invalid value.
    """
    from ortscan.session.inference_session import InferenceSession
    from ortscan.session.running import Running
    from ortscan.session.settings import entry_texts

    original = Running.__mro__[1]

    class PatchedSession(InferenceSession, metaclass=_StandIn):
        __doc__ = InferenceSession.__doc__
        _ortscan_defaults = entry_texts(options)
        _ortscan_replaces = original

    PatchedSession.__name__ = PatchedSession.__qualname__ = "InferenceSession"
    with _lock:
        _replace_class(_active[-1] if _active else original, PatchedSession)
        _active.append(PatchedSession)
    try:
        yield PatchedSession
    finally:
        with _lock:
            was_last = _active[-1] is PatchedSession
            _active.remove(PatchedSession)
            if was_last:
                _replace_class(PatchedSession, _active[-1] if _active else original)


def _replace_class(old: type, new: type) -> None:
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or _is_off_limits(module.__name__):
            continue
        for name, value in list(vars(module).items()):
            if value is old:
                setattr(module, name, new)


def _is_off_limits(module: str) -> bool:
    """Return True if ``onnxruntime.InferenceSession`` must not be replaced in ``module``.

    It must not be replaced in ortscan, in submodules of ortscan, and in submodules of onnxruntime.
    """
    return module.partition(".")[0] == "ortscan" or module.startswith("onnxruntime.")
