"""Rewrite loops with linear states: filters, gated states and decaying states."""

__all__: list[str] = []
