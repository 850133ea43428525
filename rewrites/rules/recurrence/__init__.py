"""Recurrences recognised by what they compute."""

__all__: list[str] = []
