"""Functions on graphs, nodes and values, such as building and replacing, and the context of rules.

``rewrites.loops`` knows the structure of loops, ``rewrites.ops`` the meaning of operators.
"""

__all__: list[str] = []
