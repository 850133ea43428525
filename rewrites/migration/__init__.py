"""Writes a model in another version of the standard operator set.

``operators`` converts all nodes with the ``conversions`` of their operators. ``scan_8`` replaces the batched Scan of opset 8, which
is a different operator. ``migrate`` does both for a whole model, and raises its IR version.
"""

from rewrites.migration.migrate import Migration, migrate
from rewrites.migration.operators import Conversion, is_scan_8_to_lift, needs_inlining
from rewrites.migration.scan_8 import LiftedScan

__all__ = ["Conversion", "LiftedScan", "Migration", "is_scan_8_to_lift", "migrate", "needs_inlining"]
