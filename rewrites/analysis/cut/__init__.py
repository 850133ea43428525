"""Finds where a loop may be cut in two: components of its states, sizes, costs and what can be stacked.

``rewrites.fission`` makes the cut.
"""

__all__: list[str] = []
