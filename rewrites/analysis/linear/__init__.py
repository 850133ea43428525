"""Loops whose states are linear in what they were before: how they are read, what they cost, how they are cut into blocks."""

__all__: list[str] = []
