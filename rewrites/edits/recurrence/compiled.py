"""Whether a loop is to be compiled, which closed forms of its states then leave it to."""

from rewrites.edits.rule import Patch
from rewrites.graph.context import Context
from rewrites.loops import Loop

__all__ = ["is_to_be_compiled"]


def is_to_be_compiled(loop: Loop, ctx: Context) -> bool:
    """Return whether a rule that is in use hands the loop to the library of loop plans as it is."""
    return any(rule.phase == "native" and rule.subject == "loop" and isinstance(rule.check(loop, ctx), Patch) for rule in ctx.rules)
