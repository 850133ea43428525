"""Recurrent nodes written: cells as native nodes, nodes as Scans of their equations, guards around both."""

__all__: list[str] = []
