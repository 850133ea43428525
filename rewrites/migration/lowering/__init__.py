"""The steps down, for nodes that an older version can express: mostly constant inputs that become attributes."""

from rewrites.migration.lowering.table import LOWERING

__all__ = ["LOWERING"]
