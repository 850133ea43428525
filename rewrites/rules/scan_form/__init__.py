"""Scans made plain: axes, directions, induction variables, packed states."""

__all__: list[str] = []
