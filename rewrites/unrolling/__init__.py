"""Loops of a known number of steps written out step by step, for targets that run no loops, and where it pays."""

__all__: list[str] = []
