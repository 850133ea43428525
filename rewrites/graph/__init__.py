"""Graphs of values and nodes: walks, names, building, moving and replacing; sizes; and the context that rules share.

``rewrites.loops`` knows the structure of loops, ``rewrites.ops`` the meaning of operators.
"""

__all__: list[str] = []
