"""Graphs drawn as SVG: a loop, and the nodes that replace it.

``contents`` and ``drawings`` make pictures, which are plain data, of models; ``layers`` lays them out; ``svg`` writes them.
"""

__all__: list[str] = []
