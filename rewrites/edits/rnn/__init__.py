"""Recurrent nodes written: cells as native nodes, nodes as Scans of their equations, guards around both.

The equations themselves are in ``rewrites.ops.rnn``.
"""

__all__: list[str] = []
