"""Applies rules to a model: the engine, the phases before and after the engine, and the invariants.

A rule decides whether and how to change a loop, node or model, and returns the change as a patch. The driver decides when each rule
is tried, applies the patch, and decides which rules to try next.
"""

__all__: list[str] = []
