"""Simplifies loop bodies: removes constant, repeated, loop-invariant and unused work."""

__all__: list[str] = []
