"""Reads the options of ``optimize``: which rules, which sizes."""

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

import onnx_ir as ir

from rewrites.errors import OptionError
from rewrites.rules import ALWAYS, RULES

__all__ = ["DEFAULT_MEMORY_BUDGET", "rule_names", "rules_for", "size_hints"]

DEFAULT_MEMORY_BUDGET = 256 << 20


def rule_names() -> list[str]:
    """Give the names of all rules, in the order they are tried."""
    return [rule.NAME for rule in RULES]


def rules_for(passes: Iterable[str] | None, skip: Iterable[str]) -> list[ModuleType]:
    """Give the rules to use; raises OptionError for a name there is no rule of."""
    if isinstance(passes, str) or isinstance(skip, str):
        raise OptionError("passes and skip are lists of names, not one string.")
    wanted = set(rule_names()) if passes is None else set(passes)
    unwanted = set(skip)
    for name in sorted(wanted | unwanted):
        if name not in rule_names():
            raise OptionError(f"there is no pass '{name}'; the passes are {', '.join(rule_names())}.")
    return [rule for rule in RULES if rule in ALWAYS or (rule.NAME in wanted and rule.NAME not in unwanted)]


def size_hints(model: ir.Model, shapes: Mapping[str, Sequence[int]] | None) -> dict[str, int]:
    """Give a typical size for each symbolic dimension, from typical shapes of inputs.

    Raises OptionError for an input the model does not have, and for a shape that cannot be its.
    """
    sizes: dict[str, int] = {}
    inputs = {value.name: value for value in model.graph.inputs}
    for name, dims in (shapes or {}).items():
        value = inputs.get(name)
        if value is None:
            known = ", ".join(f"'{known}'" for known in inputs)
            raise OptionError(f"shapes: the model has no input '{name}'; it has {known}.")
        if value.shape is None:
            continue
        if len(dims) != len(value.shape):
            raise OptionError(f"shapes: input '{name}' has {len(value.shape)} dimensions, not {len(dims)}.")
        for axis, (declared, typical) in enumerate(zip(value.shape.dims, dims, strict=True)):
            if not isinstance(typical, int) or typical < 0:
                raise OptionError(f"shapes: dimension {axis} of '{name}' must be a number of 0 or more, not {typical!r}.")
            if isinstance(declared, int) and declared != typical:
                raise OptionError(f"shapes: dimension {axis} of '{name}' is {declared}, not {typical}.")
            if not isinstance(declared, int) and declared.value:
                sizes[declared.value] = typical
    return sizes
