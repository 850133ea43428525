"""Directions of recurrent nodes: removes reversals around them, and joins two directions. ``scan_form`` handles Scans."""

__all__: list[str] = []
