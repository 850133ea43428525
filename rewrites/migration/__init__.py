"""Writes a model in another version of the standard operator set.

``operators`` converts node by node; ``scan_8`` lifts the batched Scan of opset 8, which is another operator; ``ir_version`` raises
the version of the format where the operator set demands it.
"""

from rewrites.migration.conversion import Conversion
from rewrites.migration.migrate import Migration, migrate
from rewrites.migration.operators import is_left_standing, needs_inlining
from rewrites.migration.scan_8 import LiftedScan

__all__ = ["Conversion", "LiftedScan", "Migration", "is_left_standing", "migrate", "needs_inlining"]
