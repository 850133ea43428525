"""Measures a loop before it is cut in two: components of its states, sizes and costs.

``rewrites.fission`` makes the cut.
"""

__all__: list[str] = []
