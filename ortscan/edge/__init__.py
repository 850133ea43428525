"""Wrappers around the public functions: limits of time and memory, and errors of one sentence."""

__all__: list[str] = []
