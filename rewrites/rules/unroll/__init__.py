"""Loops, and branches, that a target lacks or that are faster written out."""

__all__: list[str] = []
