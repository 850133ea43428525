"""Graphs drawn as SVG: a loop, and the nodes that replace it.

``contents`` and ``drawings`` turn models into pictures, which are plain data. ``layers`` lays them out and ``svg`` writes them.
"""

__all__: list[str] = []
