"""Whether both models give what was recorded; the one who is to blame where they do not is named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ortscan.running.budget import RUN_SECONDS
from ortscan.running.runner import Runs
from ortscan.verification.closeness.compare_values import Gap, Tolerances, compare_values
from rewrites.base.plain_text import counted

__all__ = ["Records", "compare_with_records"]


@dataclass
class Records:
    """What comparing with recorded outputs found.

    ``broken``: what the original gives, and the result does not. ``unlike``: what the original does not give itself. ``notes``:
    what a reader should know.
    """

    broken: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compare_with_records(
    before: Runs,
    after: Runs,
    sets: Sequence[Mapping[str, Any]],
    recorded: Sequence[Mapping[str, Any]],
    tolerances: Mapping[str, Tolerances],
) -> Records:
    """Run both on the given inputs of each set, and compare what they give with what was ``recorded``."""
    found, equal = Records(), 0
    for number, (given, record) in enumerate(zip(sets, recorded, strict=True)):
        if not record:
            continue
        where = f" of set {number}" if len(sets) > 1 else ""
        old, new = before.run(given, RUN_SECONDS), after.run(given, RUN_SECONDS)
        if old.values is None:
            found.notes.append(f"recorded outputs{where} were not compared: the original does not run on the given inputs alone")
            continue
        for position, name in enumerate(before.outputs):
            if name not in record:
                continue
            own = compare_values(record[name], old.values[position], tolerances[name])
            made = None if new.values is None else compare_values(record[name], new.values[position], tolerances[name])
            if own.reason is not None:
                found.unlike.append(f"the original itself does not give the recorded output '{name}'{where}: {_in_words(own)}")
            elif made is None or made.reason is not None:
                said = "it does not run" if made is None else _in_words(made)
                found.broken.append(
                    f"the result does not give the recorded output '{name}'{where}, which the original gives: {said}"
                )
            else:
                equal += 1
    if equal:
        found.notes.append(f"both give {counted(equal, 'recorded output')}")
    return found


def _in_words(gap: Gap) -> str:
    return f"at {list(gap.index)} {gap.reason}" if gap.index else str(gap.reason)
