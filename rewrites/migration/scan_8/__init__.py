"""Lifts opset-8 Scans, which run their body row by row, to Scans of opset 9 or later.

``row`` and ``lengths`` write one row with ordinary operators, and ``lift`` runs it for all rows.
"""

from rewrites.migration.scan_8.lift import LiftedScan, lift_scan_8

__all__ = ["LiftedScan", "lift_scan_8"]
