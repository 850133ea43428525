"""Measures a loop to decide how to cut it into two loops: its states, sizes and costs.

``rewrites.fission`` makes the cut.
"""

__all__: list[str] = []
