"""The families of cells: each looks at the next values of one or two states and says what operator computes them."""

from rewrites.analysis.recurrence.families.find import find_cells

__all__ = ["find_cells"]
