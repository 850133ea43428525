"""Lift opset-8 Scans, which run their body row by row, to Scans of opset 9 or later.

All that concerns the lengths of rows becomes ordinary operators on one row (``row``, ``lengths``); ``lift`` runs that row for all
rows.
"""

from rewrites.migration.scan_8.lift import LiftedScan, lift_scan_8

__all__ = ["LiftedScan", "lift_scan_8"]
