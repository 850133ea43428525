"""The families of cells: each looks at the next values of one or two states and says what operator computes them.

A family knows equations only: how they were written is gone by then, and what the node costs is decided later.
"""

from rewrites.recurrences.cells.families.find import find_cells

__all__ = ["find_cells"]
