"""Graphs of values and nodes: walking, naming, building, moving and replacing; sizes; and the context that rules share.

How a loop is put together is known in ``rewrites.loops``, what an operator means in ``rewrites.ops``.
"""

__all__: list[str] = []
