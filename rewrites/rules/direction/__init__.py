"""Directions of recurrent nodes: between reversals, and two as one."""

__all__: list[str] = []
