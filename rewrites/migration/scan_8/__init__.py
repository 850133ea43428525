"""Replaces opset-8 Scans, which run their body row by row, by Scans of opset 9 or later.

``row`` and ``lengths`` write a Scan for one row, and ``lift`` runs this Scan for all rows.
"""

from rewrites.migration.scan_8.lift import LiftedScan, lift_scan_8

__all__ = ["LiftedScan", "lift_scan_8"]
