"""Applies rules to a model: the engine, the phases before and after it, and the invariants.

The driver decides when a rule is tried, and what follows if it fires. It never decides what a rule does.
"""

__all__: list[str] = []
