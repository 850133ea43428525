"""Find the patches that make a result faulty by bisection, and rewrite without them.

A patch is one change that a rule makes to a loop or node. Rewriting is deterministic, so it can be repeated and stopped after
any number of patches. When a faulty patch is found, its rule is forbidden (vetoed) for the patched loop or node, and the model is
rewritten again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ortscan.pipeline.rewriting import Rewritten
from rewrites.base.errors import InvariantBroken, MalformedLoop, OrtscanError, is_from_elsewhere
from rewrites.base.vetoes import RuleFailed, Veto, Vetoes

__all__ = ["MOST_PLACES", "MOST_SECONDS", "MOST_VETOES", "BisectionResult", "FindFault", "Rewrite", "culprit", "rewrite_soundly"]

MOST_VETOES = 16
"""The most patches that are taken back one by one. After that, all further patches are taken back at once."""
MOST_PLACES = 3
"""If this many patches of a rule are taken back, the rule is skipped everywhere."""
MOST_SECONDS = 120.0
"""The time limit of the search in seconds. After that, all patches that are not known to be sound are taken back."""

FindFault = Callable[[Rewritten], str | None]
"""A function that returns the fault of a result, or None if the result is sound."""


class Rewrite(Protocol):
    """A function that rewrites a model with at most ``stop_after`` patches.

    It leaves out the patches that ``vetoes`` forbid.
    """

    def __call__(self, stop_after: int | None, vetoes: Vetoes) -> Rewritten:
        """Rewrite the model once, and return the result."""


@dataclass
class BisectionResult:
    """The outcome of `rewrite_soundly`: a result without a fault, if there is one.

    Args:
        result: the result; None if even the result without patches has a fault.
        vetoes: the patches that were taken back one by one.
        fault: None if ``result`` has all patches except ``vetoes``. Otherwise, the fault of the model with all these patches.
            ``result`` then has only the first patches, up to a patch with which the model is known to be sound.
    """

    result: Rewritten | None
    vetoes: Sequence[Veto] = ()
    fault: str | None = None


def rewrite_soundly(
    rewrite: Rewrite, find_fault: FindFault, stop_after: int | None = None, is_valid: Callable[[], bool] = lambda: True
) -> BisectionResult:
    """Rewrite the model, and take back the patches that make the result faulty, one by one.

    Args:
        rewrite: rewrites the model.
        find_fault: returns the fault of a result.
        stop_after: the maximum number of patches; None for any number.
        is_valid: returns True if the original model is valid.

    Raises:
        Exception: an error that is due to the model or to options. No patch is taken back because of such an error. Examples are
            errors that occur even without patches, and all errors if the original model is invalid.
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
        return BisectionResult(tried.result, search.vetoes)
    best = search.attempt(search.sound)
    if best.error is not None:
        try:
            raise best.error
        finally:
            del best, tried  # the traceback refers to this frame, which would keep the model
    return BisectionResult(best.result if best.fault is None else None, search.vetoes, tried.fault)


def culprit(rewrite: Rewrite, find_fault: FindFault, stop_after: int | None = None, vetoes: Sequence[Veto] = ()) -> Veto | None:
    """Rewrite without the patches ``vetoes``, and return the first patch that makes the result faulty.

    Return None if no single patch makes the result faulty, or if the search takes too long. See `rewrite_soundly` for the other
    arguments.
    """
    search = _Search(rewrite, find_fault)
    search.vetoes += vetoes
    return search.culprit(search.attempt(stop_after))


@dataclass
class _Attempt:
    """The outcome of one attempt to rewrite.

    Attributes:
        patches: the rule and the location of each applied patch.
        result: the result, or None if an error was raised.
        fault: the fault of the result, or the message of the error. None if the result is sound.
        error: the error that was raised, or None.
    """

    patches: Sequence[tuple[str, str]]
    result: Rewritten | None = None
    fault: str | None = None
    error: Exception | None = None


class _Search:
    """A search for faulty patches.

    Attributes:
        vetoes: the faulty patches that were found so far. Every attempt leaves them out.
        sound: a number of patches. A result that leaves out ``vetoes`` and stops after this number of patches is known to be
            sound. The number is 0 until such a result is found.
    """

    def __init__(self, rewrite: Rewrite, find_fault: FindFault, is_valid: Callable[[], bool] = lambda: True) -> None:
        self.vetoes: list[Veto] = []
        self.sound = 0
        self._rewrite, self._find_fault, self._is_valid = rewrite, find_fault, is_valid
        self._end = time.monotonic() + MOST_SECONDS

    def attempt(self, stop_after: int | None) -> _Attempt:
        """Rewrite once, and return the outcome.

        Raise errors that are due to the model or to options. Any other error becomes the fault of the attempt.
        """
        vetoes = Vetoes(tuple(self.vetoes))
        try:
            result = self._rewrite(stop_after, vetoes)
            return _Attempt(vetoes.patches, result, self._find_fault(result))
        except Exception as error:
            if isinstance(error, MemoryError | RecursionError) or is_from_elsewhere(error):
                raise
            is_defect = isinstance(error, MalformedLoop) and vetoes.patches
            if isinstance(error, OrtscanError) and not isinstance(error, InvariantBroken) and not is_defect:
                raise
            if not self._is_valid():
                raise (error.__cause__ if isinstance(error, RuleFailed) and error.__cause__ is not None else error) from None
            fault = str(error) if isinstance(error, OrtscanError) else f"{type(error).__name__}: {error}"
            return _Attempt(vetoes.patches, None, fault, error)

    def culprit(self, tried: _Attempt) -> Veto | None:
        """Return the first patch that makes the result of ``tried`` faulty.

        Return None if no single patch makes the result faulty, or if the search takes too long.
        """
        if isinstance(tried.error, RuleFailed):
            return tried.error.veto
        if tried.fault is None or not tried.patches:
            return None
        sound, faulty, fault = self.sound, len(tried.patches), tried.fault
        if sound >= faulty or (not sound and self.attempt(0).fault is not None):
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
