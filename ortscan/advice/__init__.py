"""Propose options and sizes that would improve the remaining loops.

Each proposal is tried on the model and timed before it is reported.
"""

__all__: list[str] = []
