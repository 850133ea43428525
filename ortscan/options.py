"""Reads the options of ``optimize``: which rules, which sizes."""

import itertools
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onnx_ir as ir

from ortscan.base.paths import is_path_like
from ortscan.ort.runtimes import Runtime
from ortscan.targets import Target
from rewrites.base.errors import OptionError
from rewrites.base.plain_text import did_you_mean, shown
from rewrites.native.functions import DOMAIN, IR_VERSION
from rewrites.registry import ON_MODELS, RULES
from rewrites.rule import Rule

__all__ = [
    "DEFAULT",
    "DEFAULT_MEMORY_BUDGET",
    "check_flags",
    "check_native",
    "check_path",
    "default_names",
    "left_out",
    "memory_bytes",
    "most_steps",
    "names_of",
    "on_request_names",
    "rule_homes",
    "rule_names",
    "rules_for",
    "size_hints",
    "wanted",
]

DEFAULT = "default"
DEFAULT_MEMORY_BUDGET = 256 << 20


_NEW_NAMES = {rule.formerly: rule.name for rule in RULES if rule.formerly}
"""Names of the release before, and what they are now."""

_ON_MODELS = [rule for rule in ON_MODELS if rule.use != "always"]
"""Rules on a model as a whole that may be left out."""


def rule_names() -> list[str]:
    """Return the names of all rules, in the order they are tried."""
    return list(dict.fromkeys(rule.name for rule in [*RULES, *_ON_MODELS]))


def rule_homes() -> dict[str, str]:
    """Return the module of each rule by its name, in the order they are tried."""
    homes: dict[str, str] = {}
    for rule in [*RULES, *_ON_MODELS]:
        homes.setdefault(rule.name, rule.check.__module__)
    return homes


def default_names() -> list[str]:
    """Return the names of the rules that are used where none are named, which the name ``default`` stands for."""
    return list(dict.fromkeys(rule.name for rule in [*RULES, *_ON_MODELS] if rule.use != "asked"))


def on_request_names() -> list[str]:
    """Return the names of the rules that are used only where they are named, or where everything that can be run is to be."""
    return list(dict.fromkeys(rule.name for rule in RULES if rule.use == "asked"))


def check_flags(**flags: Any) -> None:
    """Raise OptionError for a flag that is neither True nor False."""
    for name, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):
            raise OptionError(f"{name} must be True or False, not {shown(value)}.")


def check_native(native: bool, runtime: Runtime | None) -> None:
    """Raise OptionError where loops are to be compiled for a release that does not load what they are called by."""
    if native and runtime is not None and runtime.ir_version < IR_VERSION:
        raise OptionError(f"native loops need IR version {IR_VERSION}; {runtime} loads {runtime.ir_version} at most.")


def check_path(output: Any) -> None:
    """Raise OptionError where ``output`` is neither None nor a path."""
    if output is not None and not is_path_like(output):
        raise OptionError(f"output must be a path, not {shown(output)}.")


def memory_bytes(budget: Any) -> int:
    """Read ``memory_budget``; raises OptionError for what is no number of bytes."""
    if not isinstance(budget, numbers.Integral) or isinstance(budget, bool) or budget < 0:
        raise OptionError(f"memory_budget must be a number of bytes, 0 or more, not {shown(budget)}.")
    return int(budget)


def most_steps(max_unroll: Any) -> int | None:
    """Read ``max_unroll``; raises OptionError for what is neither None nor a number of steps."""
    if max_unroll is None:
        return None
    if not isinstance(max_unroll, numbers.Integral) or isinstance(max_unroll, bool) or max_unroll < 0:
        raise OptionError(f"max_unroll must be a number of steps, 0 or more, not {shown(max_unroll)}.")
    return int(max_unroll)


def wanted(passes: Iterable[str] | None, target: Target, *, custom_ops: bool, native: bool) -> Iterable[str] | None:
    """Return ``passes`` with those that the flags ask for; raises OptionError for plans on a target that does not run them."""
    if native and DOMAIN not in target.domains:
        raise OptionError(f"native loops run where the target is cpu, not {target.name}.")
    plans = {rule.name for rule in RULES if rule.phase == "native"}
    asked = [*(plans if native else ())]
    if passes is None:
        asked += [name for name in on_request_names() if custom_ops and name not in plans]
        return [DEFAULT, *asked] if asked else None
    return [*names_of("passes", passes), *asked]


def rules_for(passes: Iterable[str] | None, skip: Iterable[str]) -> list[Rule[Any]]:
    """Return the rules to use; raises OptionError for what is no list of names, and for a name there is no rule of."""
    wanted = {DEFAULT} if passes is None else names_of("passes", passes)
    if DEFAULT in wanted:
        wanted = wanted - {DEFAULT} | set(default_names())
    unwanted = names_of("skip", skip)
    for name in sorted(wanted | unwanted):
        if name not in rule_names():
            raise OptionError(
                f"there is no pass '{name}'{did_you_mean(name, rule_names())}; the passes are {', '.join(rule_names())}."
            )
    return [rule for rule in RULES if rule.use == "always" or (rule.name in wanted and rule.name not in unwanted)]


def left_out(skip: Iterable[str]) -> frozenset[str]:
    """Return the names of the rules on a model as a whole that are not to be used, of those that ``rules_for`` has read."""
    return frozenset(rule.name for rule in _ON_MODELS).intersection(skip)


_MOST_NAMES = 10_000
"""Of words without end so many are read."""


def names_of(option: str, given: Any) -> set[str]:
    """Read a list of names; raises OptionError for what is none."""
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes) and getattr(given, "ndim", 1) == 1
    names = list(itertools.islice(given, _MOST_NAMES)) if is_list else []
    if not is_list or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{option} must be a list of names of passes, not {shown(given)}.")
    return {_NEW_NAMES.get(name, name) for name in names}


def size_hints(model: ir.Model, shapes: Mapping[str, Sequence[int | None]]) -> dict[str, int]:
    """Return a typical size for each symbolic dimension, from typical shapes of inputs.

    Raises OptionError for an input the model does not have, and for a shape that cannot be its.
    """
    sizes: dict[str, int] = {}
    inputs = {value.name: value for value in model.graph.inputs}
    for name, dims in shapes.items():
        value = inputs.get(name)
        if value is None:
            known = ", ".join(f"'{known}'" for known in inputs)
            raise OptionError(f"shapes: the model has no input '{name}'; it has {known}{did_you_mean(name, filter(None, inputs))}.")
        if value.shape is None:
            continue
        if len(dims) != len(value.shape):
            raise OptionError(f"shapes: input '{name}' has {len(value.shape)} dimensions, not {len(dims)}.")
        for axis, (declared, typical) in enumerate(zip(value.shape.dims, dims, strict=True)):
            if typical is None:
                continue
            if not isinstance(typical, int) or typical < 0:
                raise OptionError(f"shapes: dimension {axis} of '{name}' must be a number of 0 or more, not {shown(typical)}.")
            if isinstance(declared, int) and declared != typical:
                raise OptionError(f"shapes: dimension {axis} of '{name}' is {declared}, not {typical}.")
            if not isinstance(declared, int) and declared.value:
                sizes[declared.value] = typical
    return sizes
