"""Recurrences recognised by what they compute, as a whole; never by how they are drawn."""

__all__: list[str] = []
