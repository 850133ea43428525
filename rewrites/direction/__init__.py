"""Removes reversals around recurrent nodes, and joins the nodes of two directions.

``scan_form`` removes reversals around Scans.
"""

__all__: list[str] = []
