"""Loops that have plans run as loops in the original, whose meaning those are, wherever the library is registered."""

from contextlib import ExitStack

from ortscan.modelio import inline_functions, load, restore_interface
from ortscan.modelio.source import Source, model_of, open_source
from rewrites.native.functions import DOMAIN

__all__ = ["without_plans"]


def without_plans(before: Source, stack: ExitStack) -> Source:
    """Return ``before`` with the functions inlined that hold such loops; itself where there are none."""
    if not any(function.domain == DOMAIN for function in before.proto.functions):
        return before
    loaded = load(model_of(before))
    inline_functions(loaded.model, lambda function: function.domain == DOMAIN)
    restore_interface(loaded)
    return open_source(loaded, stack)
