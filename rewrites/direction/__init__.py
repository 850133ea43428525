"""Directions of recurrent nodes: between reversals, and two as one. Directions of Scans are ``scan_form``'s."""

__all__: list[str] = []
