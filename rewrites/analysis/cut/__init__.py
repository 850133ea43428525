"""Where a loop may be cut in two: components of its states, what can be stacked, sizes, costs and the minimum cut.

The cut itself is made in ``rewrites.fission``.
"""

__all__: list[str] = []
