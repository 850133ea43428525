"""Stores float32 weights in fewer bits."""

__all__: list[str] = []
