"""Associative scans: a state after each of many steps, in blocks of steps, without a loop over the steps."""

__all__: list[str] = []
