"""Lifts opset-8 Scans, which run their body row by row, to Scans of opset 9 or later.

``lift_scan_8`` takes one node. All that concerns the lengths of rows becomes ordinary operators on one row first (``row``); this is
put to use in one of three ``forms``: as it is where there is one, for all rows at once by the batching table, or row by row.
"""

from rewrites.migration.scan_8.lift import LiftedScan, lift_scan_8

__all__ = ["LiftedScan", "lift_scan_8"]
