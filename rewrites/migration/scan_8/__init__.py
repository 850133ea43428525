"""Replaces Scans of opset 8, which have a batch axis, by Scans of opset 9 or later, which have none.

An opset-8 Scan runs its body separately for each row (element of the batch). The modules ``row`` and ``lengths`` write a Scan for
one row, and ``lift`` runs this Scan for all rows.
"""

from rewrites.migration.scan_8.lift import LiftedScan, lift_scan_8

__all__ = ["LiftedScan", "lift_scan_8"]
