"""Applies rules to a model: the engine, the phases before and after the engine, and the invariants.

The driver determines when rules are tried, and what happens after a rule applied a patch. The rules determine the patches.
"""

__all__: list[str] = []
