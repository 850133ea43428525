"""Compare all outputs of one run of both models. If they differ, rerun the original to find out why.

Works around ORT-LOOP-NO-STEPS-SIZES, ORT-RECURRENT-NAN and ORT-LOGSOFTMAX-NAN.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from ortscan.running.budget import Budget
from ortscan.running.runner import ModelSession
from ortscan.verification.judge.compare_values import Gap, compare_values
from ortscan.verification.judge.sensitivity import Sensitivity
from ortscan.verification.judge.tolerances import History, Tolerances
from ortscan.verification.oracle.in_double import feed_in_double
from ortscan.verification.oracle.rounding_noise import noise_feeds

__all__ = ["SPECIAL", "Comparer", "RunLimit"]

SPECIAL = ("infinite", "NaN")
"""The kinds of values with infinities or NaN."""
_REPEATS = 2
_SHORTEST_LIMIT = 1.0
_DECIDING_SECONDS = 10.0
_SWALLOWED = "NaN and infinity were not compared at nodes that hide them, such as recurrent nodes or maxima"
_MILD = (
    "output '{}' was compared with a wider tolerance, because rounding changes the original itself",
    "elements of output '{}' that are sensitive to rounding or overflow were not compared",
)
_OTHER_STEPS = "output '{}' was not compared in some cases, because rounding decides how many steps a loop of the original runs"
_GUESSED = "sizes of empty outputs were not compared, because onnxruntime guesses them for a Loop without iterations"

_Values = Sequence[Any]
_Feed = Mapping[str, Any]


@dataclass
class RunLimit:
    """The time that a run of the original may take.

    Attributes:
        budget: the limits of the whole comparison.
        patience: the time limit in seconds of a single run; None if only the budget limits it.
        slowest: the duration in seconds of the slowest run so far.
    """

    budget: Budget
    patience: float | None
    slowest: float = 0.0

    def seconds(self) -> float:
        """Return the time limit of the next run in seconds.

        The limit is 200 times the duration of the slowest run, but at most ``patience``, and at most the time that is left. Even if
        no time is left, a run gets a short time. Otherwise nothing would be compared on a busy machine.
        """
        left = max(self.budget.left(), min(_SHORTEST_LIMIT, 20 * self.slowest) if self.slowest else _SHORTEST_LIMIT)
        limit = left if self.patience is None else min(left, self.patience)
        return limit if not self.slowest else min(limit, max(_SHORTEST_LIMIT, 200 * self.slowest))

    def deciding_seconds(self) -> float:
        """Return the time limit in seconds of a run that decides whether a difference counts.

        Such a run gets enough time even if no time is left. Otherwise equal models would be called different on a busy machine.
        """
        return max(self.seconds(), _DECIDING_SECONDS)


@dataclass
class Comparer:
    """Compare outputs, and remember what was learned about them for later cases.

    Attributes:
        before: a session of the original.
        tolerances: the tolerances of each output.
        limit: the time limit of a run.
        shapes_vary: True if the shapes of empty outputs of the original may be wrong. For a Loop without steps, onnxruntime guesses
            sizes that are not declared.
        with_sizes: a function that returns a session of the original with more declared sizes. This session is used for outputs
            that are empty only in the original.
        noisy: a function that returns a session of the original with random noise in all roundings, or None if that is impossible.
        exact: a function that returns a session of the original in float64, or None if that is impossible.
        nan_hiding: the outputs that depend on nodes that do not propagate NaN and infinity.
        draws: True if the original may draw random numbers. Then the original runs again in the first case, to find unstable
            outputs.
        unstable: the outputs that differ between two runs of the original. They are not compared.
        optimizer_sensitive: the outputs that change if the original gets additional nodes, although these nodes should change no
            number. It is unknown whether the values with or without these nodes are right. Runs with noise need such nodes, so
            these runs do not show how roundings affect these outputs.
        notes: notes for the report.
    """

    before: ModelSession
    tolerances: Mapping[str, Tolerances]
    limit: RunLimit
    shapes_vary: bool
    with_sizes: Callable[[], ModelSession]
    noisy: Callable[[], ModelSession | None]
    exact: Callable[[], ModelSession | None]
    nan_hiding: Set[str] = frozenset()
    draws: bool = False
    unstable: set[str] = field(default_factory=set)
    optimizer_sensitive: set[str] = field(default_factory=set)
    notes: dict[str, None] = field(default_factory=dict)
    _history: dict[tuple[str, bool], History] = field(default_factory=dict)

    def compare(self, kind: str, feed: _Feed, expected: _Values, actual: _Values) -> dict[str, Gap]:
        """Return the difference between the outputs of both models, for each output that can be compared.

        Args:
            kind: the kind of the values in ``feed``.
            feed: the inputs of both models.
            expected: the outputs of the original.
            actual: the outputs of the rewritten model.
        """
        special = kind in SPECIAL
        sensitivity = Sensitivity(cache(partial(self._exact, feed)), cache(partial(self._noisy, feed)), special=special)
        gaps = self._gaps(expected, actual, sensitivity, tiny=kind == "tiny")
        if self.draws or any(gap.reason for gap in gaps.values()):
            self._find_unstable(feed, expected)
            self.draws = False
            gaps = {name: gap for name, gap in gaps.items() if name not in self.unstable}
        if not special:
            self._find_optimizer_sensitive(gaps, feed, expected)
        elif swallowed := {name for name, gap in gaps.items() if gap.reason} & self.nan_hiding:
            self.notes[_SWALLOWED] = None
            gaps = {name: gap for name, gap in gaps.items() if name not in swallowed}
        return gaps | self._without_guesses(gaps, feed, expected, actual) if self.shapes_vary else gaps

    def finds_equal(self, expected: _Values, actual: _Values, names: Set[str]) -> bool:
        """Return True if the outputs ``names`` are equal within the tolerances.

        ``expected`` and ``actual`` have all outputs of two runs. The tolerances also depend on the magnitudes of the outputs in
        earlier cases.
        """
        gaps = (
            compare_values(old, new, self.tolerances[name], self._history.get((name, False)))
            for name, old, new in zip(self.before.outputs, expected, actual, strict=True)
            if name in names
        )
        return all(gap.reason is None for gap in gaps)

    def _gaps(
        self, expected: _Values, actual: _Values, sensitivity: Sensitivity | None = None, *, tiny: bool = False
    ) -> dict[str, Gap]:
        gaps = {}
        for position, (name, old, new) in enumerate(zip(self.before.outputs, expected, actual, strict=True)):
            if name in self.unstable:
                continue
            if self.shapes_vary and _both_empty(old, new):
                self.notes[_GUESSED] = None
                gaps[name] = Gap()
                continue
            tolerances = self.tolerances[name]
            widening = None if sensitivity is None else sensitivity.widening(name, position, tolerances.roundings)
            special = sensitivity is not None and sensitivity.special
            history = self._history.setdefault((name, tiny), History())
            gap = compare_values(old, new, tolerances, history, widening, special=special)
            if (
                sensitivity is not None
                and _differ_in_shape(old, new)
                and sensitivity.changes_shape(old, position, tolerances.roundings)
            ):
                self.notes[_OTHER_STEPS.format(name)] = None
                gap = Gap(elements=old.size, left_out=old.size)
            gaps[name] = gap
        for name, left_out in sensitivity.widened_outputs.items() if sensitivity is not None else ():
            if gaps[name].reason is None:
                self.notes[_MILD[left_out].format(name)] = None
        return gaps

    def _exact(self, feed: _Feed) -> _Values | None:
        runs = self.exact()
        return (
            None if runs is None or runs.error is not None else runs.run(feed_in_double(feed), self.limit.deciding_seconds()).values
        )

    def _noisy(self, feed: _Feed, *roundings: float) -> list[_Values]:
        runs = self.noisy()
        if runs is None or runs.error is not None:
            return []
        feeds = [noisy for each in roundings for noisy in noise_feeds(each, feed)]
        return [values for each in feeds if (values := runs.run(each, self.limit.deciding_seconds()).values) is not None]

    def _find_unstable(self, feed: _Feed, expected: _Values) -> None:
        for _ in range(_REPEATS):
            again = self.before.run(feed, self.limit.seconds()).values
            if again is not None:
                self.unstable.update(name for name, gap in self._gaps(expected, again).items() if gap.reason)

    def _find_optimizer_sensitive(self, gaps: Mapping[str, Gap], feed: _Feed, expected: _Values) -> None:
        """Test outputs of which no number could be compared, and add outputs to ``optimizer_sensitive``.

        An output is added if all runs with noise return equal values for the output, but the original returns another value.
        """
        sensitive = {name for name, gap in gaps.items() if gap.reason is None and gap.left_out and not gap.numbers}
        runs = self._noisy(feed, 0.0, 1.0) if sensitive else []
        for position, name in enumerate(self.before.outputs if runs else ()):
            if name in sensitive:
                first, *others = (values[position] for values in runs)
                reasons = [compare_values(first, other, self.tolerances[name]).reason for other in others]
                if compare_values(expected[position], first, self.tolerances[name]).reason is not None and not any(reasons):
                    self.optimizer_sensitive.add(name)

    def _without_guesses(self, gaps: Mapping[str, Gap], feed: _Feed, expected: _Values, actual: _Values) -> dict[str, Gap]:
        """Compare again those outputs that are empty in the original, but not in the rewritten model.

        This time, the original runs with more declared sizes, so that onnxruntime need not guess shapes. Return the gaps of those
        outputs that are now equal within the tolerances. Outputs that still differ are not returned.
        """
        pairs = enumerate(zip(self.before.outputs, expected, actual, strict=True))
        positions = {name: at for at, (name, old, new) in pairs if name in gaps and _is_empty(old) and not _is_empty(new)}
        sized = self.with_sizes() if positions else None
        values = sized.run(feed, self.limit.seconds()).values if sized is not None and sized.error is None else None
        if values is None:
            return {}
        own = {name: compare_values(values[at], actual[at], self.tolerances[name]) for name, at in positions.items()}
        equal = {name: gap for name, gap in own.items() if gap.reason is None}
        if equal:
            self.notes[_GUESSED] = None
        return equal


def _is_empty(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.size == 0


def _differ_in_shape(old: Any, new: Any) -> bool:
    """Return True if both values are non-empty arrays of the same type and rank, but of different shapes."""
    if not (isinstance(old, np.ndarray) and isinstance(new, np.ndarray) and old.dtype == new.dtype and old.size and new.size):
        return False
    return old.ndim == new.ndim and old.shape != new.shape


def _both_empty(old: Any, new: Any) -> bool:
    """Return True if both values are empty arrays of the same type, but of different shapes."""
    return _is_empty(old) and _is_empty(new) and old.dtype == new.dtype and old.shape != new.shape
