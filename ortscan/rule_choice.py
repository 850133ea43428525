"""Choose the rules to use, from the options ``passes``, ``skip``, ``custom_ops`` and ``native``."""

import itertools
from collections.abc import Iterable
from typing import Any

from ortscan.targets import Target
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, shown
from rewrites.native.operator_names import DOMAIN
from rewrites.registry import ON_MODELS, RULES
from rewrites.rule import Rule

__all__ = [
    "default_names",
    "names_of",
    "on_request_names",
    "passes_with_added_rules",
    "rule_homes",
    "rule_names",
    "rules_for",
    "skipped_model_rules",
]

_DEFAULT = "default"
_MOST_NAMES = 10_000
"""The maximum number of names that are read from an iterable, which may be infinite."""
_NEW_NAMES = {rule.formerly: rule.name for rule in RULES if rule.formerly}
"""The current names of rules by their names in the previous release."""

_ON_MODELS = [rule for rule in ON_MODELS if rule.use != "always"]
"""Rules on a whole model that may be skipped."""


def rule_names() -> list[str]:
    """Return the names of all rules, in the order in which they are tried."""
    return list(dict.fromkeys(rule.name for rule in [*RULES, *_ON_MODELS]))


def rule_homes() -> dict[str, str]:
    """Return the module of each rule by the rule's name, in the order in which rules are tried."""
    homes: dict[str, str] = {}
    for rule in [*RULES, *_ON_MODELS]:
        homes.setdefault(rule.name, rule.check.__module__)
    return homes


def default_names() -> list[str]:
    """Return the names of the rules that the word ``default`` selects in the option ``passes``."""
    return list(dict.fromkeys(rule.name for rule in [*RULES, *_ON_MODELS] if rule.use != "asked"))


def on_request_names() -> list[str]:
    """Return the names of the rules that ``default`` does not include.

    They are used only if ``passes`` names them, or if the option ``custom_ops`` or ``native`` adds them.
    """
    return list(dict.fromkeys(rule.name for rule in RULES if rule.use == "asked"))


def passes_with_added_rules(
    passes: Iterable[str] | None, target: Target, *, custom_ops: bool, native: bool
) -> Iterable[str] | None:
    """Return the names in ``passes``, and the names that ``custom_ops`` and ``native`` add.

    If ``passes`` is None, the default rules are used. If nothing is added to them, the result is None too. Raise OptionError if
    ``native`` is True and the target does not run native loops.
    """
    if native and DOMAIN not in target.domains:
        raise OptionError(f"native: compiled loops run only on the target cpu, not on {target.name}.")
    plans = {rule.name for rule in RULES if rule.phase == "native"}
    asked = list(plans) if native else []
    if passes is None:
        asked += [name for name in on_request_names() if custom_ops and name not in plans]
        return [_DEFAULT, *asked] if asked else None
    return [*names_of("passes", passes), *asked]


def rules_for(passes: Iterable[str] | None, skip: Iterable[str]) -> list[Rule[Any]]:
    """Return the rules that are in ``passes`` and not in ``skip``, and the rules that are always used.

    Raise OptionError if an option is not a list of names of rules.
    """
    passes_with_added_rules = {_DEFAULT} if passes is None else names_of("passes", passes)
    if _DEFAULT in passes_with_added_rules:
        passes_with_added_rules = passes_with_added_rules - {_DEFAULT} | set(default_names())
    unwanted = names_of("skip", skip)
    for name in sorted(passes_with_added_rules | unwanted):
        if name not in rule_names():
            known = did_you_mean(name, rule_names()) or f"; the passes are {', '.join(rule_names())}"
            raise OptionError(f"there is no pass '{name}'{known}.")
    return [rule for rule in RULES if rule.use == "always" or (rule.name in passes_with_added_rules and rule.name not in unwanted)]


def skipped_model_rules(skip: Iterable[str]) -> frozenset[str]:
    """Return those names in ``skip`` that belong to rules that change a whole model, not a loop or node."""
    return frozenset(rule.name for rule in _ON_MODELS).intersection(skip)


def names_of(option: str, value: Any) -> set[str]:
    """Return the names of rules in ``value``, which is the value of ``option``.

    A name from the previous release is replaced by the current name. Raise OptionError if ``value`` is no list of names.
    """
    is_list = isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) == 1
    names = list(itertools.islice(value, _MOST_NAMES)) if is_list else []
    if not is_list or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{option} must be a list of names of passes, not {shown(value)}.")
    return {_NEW_NAMES.get(name, name) for name in names}
