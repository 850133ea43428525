"""Compiles loops into loop plans: the body of a loop as vector operations on known addresses.

``ortscan/docs/maintainers/loop-plans.md`` describes the format, ``plan.py`` defines its tables as classes, and ``encoding.py``
encodes them.
"""

__all__: list[str] = []
