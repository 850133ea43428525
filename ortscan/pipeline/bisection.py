"""Find the patches that make a result faulty by bisection, and rewrite without them.

Rewriting is deterministic, so it can be repeated and stopped after any number of patches. The rule of a faulty patch is then
disabled for that loop, and the model is rewritten again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ortscan.pipeline.rewriting import Rewritten
from rewrites.base.errors import InvariantBroken, MalformedLoop, OrtscanError, is_from_elsewhere
from rewrites.base.vetoes import RuleFailed, Veto, Vetoes

__all__ = ["MOST_PLACES", "MOST_SECONDS", "MOST_VETOES", "FindFault", "Rewrite", "Sound", "culprit", "soundest"]

MOST_VETOES = 16
"""The most patches that are taken back one by one. After that, all further patches are taken back at once."""
MOST_PLACES = 3
"""If this many patches of a rule are taken back, the rule is skipped everywhere."""
MOST_SECONDS = 120.0
"""The time limit of the search in seconds. After that, all patches that are not known to be sound are taken back."""

FindFault = Callable[[Rewritten], str | None]
"""A function that returns the fault of a result, or None if the result is sound."""


class Rewrite(Protocol):
    """A function that rewrites a model with at most ``stop_after`` patches and without ``vetoes``."""

    def __call__(self, stop_after: int | None, vetoes: Vetoes) -> Rewritten:
        """Rewrite."""


@dataclass
class Sound:
    """The best result without a fault.

    Args:
        result: the result; None if even the result without patches has a fault.
        vetoes: the patches that were taken back.
        fault: the remaining fault, if taking patches back did not help.
    """

    result: Rewritten | None
    vetoes: Sequence[Veto] = ()
    fault: str | None = None


def soundest(
    rewrite: Rewrite, find_fault: FindFault, stop_after: int | None = None, is_valid: Callable[[], bool] = lambda: True
) -> Sound:
    """Rewrite, and take back the patches that make the result faulty, one by one. Raise errors that also occur without patches.

    ``is_valid`` returns True if the model is valid. If it is invalid, an error in a rule is not a defect, and this function raises
    it.
    """
    search = _Search(rewrite, find_fault, is_valid)
    tried = search.attempt(stop_after)
    while tried.fault is not None and len(search.vetoes) < MOST_VETOES:
        veto = search.culprit(tried)
        if veto is None:
            break
        is_everywhere = sum(other.rule == veto.rule for other in search.vetoes) + 1 >= MOST_PLACES
        search.vetoes.append(replace(veto, where="") if is_everywhere else veto)
        tried = search.attempt(stop_after)
    if tried.fault is None:
        return Sound(tried.result, search.vetoes)
    best = search.attempt(search.sound)
    if best.error is not None:
        try:
            raise best.error
        finally:
            del best, tried  # the traceback refers to this frame, which would keep the model
    return Sound(best.result if best.fault is None else None, search.vetoes, tried.fault)


def culprit(rewrite: Rewrite, find_fault: FindFault, stop_after: int | None = None, vetoes: Sequence[Veto] = ()) -> Veto | None:
    """Rewrite without ``vetoes`` and return the patch that makes the result faulty, or None if the search takes too long."""
    search = _Search(rewrite, find_fault)
    search.vetoes += vetoes
    return search.culprit(search.attempt(stop_after))


@dataclass
class _Tried:
    """An attempt to rewrite: its patches, and either its result and fault or its error."""

    patches: Sequence[tuple[str, str]]
    result: Rewritten | None = None
    fault: str | None = None
    error: Exception | None = None


class _Search:
    """A search for faulty patches. The first ``sound`` patches are known to be sound without ``vetoes``."""

    def __init__(self, rewrite: Rewrite, find_fault: FindFault, is_valid: Callable[[], bool] = lambda: True) -> None:
        self.vetoes: list[Veto] = []
        self.sound = 0
        self._rewrite, self._find_fault, self._is_valid = rewrite, find_fault, is_valid
        self._end = time.monotonic() + MOST_SECONDS

    def attempt(self, stop_after: int | None) -> _Tried:
        """Rewrite once. Raise errors about the model or options. Other errors become the attempt's fault."""
        vetoes = Vetoes(tuple(self.vetoes))
        try:
            result = self._rewrite(stop_after, vetoes)
            return _Tried(vetoes.patches, result, self._find_fault(result))
        except Exception as error:
            if isinstance(error, MemoryError | RecursionError) or is_from_elsewhere(error):
                raise
            is_defect = isinstance(error, MalformedLoop) and vetoes.patches
            if isinstance(error, OrtscanError) and not isinstance(error, InvariantBroken) and not is_defect:
                raise
            if not self._is_valid():
                raise (error.__cause__ if isinstance(error, RuleFailed) and error.__cause__ is not None else error) from None
            fault = str(error) if isinstance(error, OrtscanError) else f"{type(error).__name__}: {error}"
            return _Tried(vetoes.patches, None, fault, error)

    def culprit(self, tried: _Tried) -> Veto | None:
        """Return the first patch that makes the result faulty, or None if no single patch does."""
        if isinstance(tried.error, RuleFailed):
            return tried.error.veto
        if tried.fault is None or not tried.patches:
            return None
        sound, faulty, fault = self.sound, len(tried.patches), tried.fault
        if not sound and self.attempt(0).fault is not None:
            return None
        while faulty - sound > 1:
            if time.monotonic() > self._end:
                return None
            middle = self.attempt((sound + faulty) // 2)
            if middle.fault is None:
                sound = self.sound = (sound + faulty) // 2
            elif isinstance(middle.error, RuleFailed):
                return middle.error.veto
            else:
                faulty, fault = (sound + faulty) // 2, middle.fault
        return Veto(*tried.patches[sound], sound, fault or "")
