"""Checks of a rewritten model without running it: it must be valid, and its shapes must agree with the original's.

``verification`` compares the numbers.
"""

__all__: list[str] = []
