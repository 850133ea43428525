"""Graphs drawn as SVG: a loop, and the nodes that replace it.

``contents`` and ``drawings`` turn models into pictures, which are plain data. ``layers`` computes the layout, and ``svg`` writes
it.
"""

__all__: list[str] = []
