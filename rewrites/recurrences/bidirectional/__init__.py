"""Two recurrent nodes of opposite directions on one sequence as one bidirectional node.

``pairs`` finds them, ``meetings`` says where their results come together, ``write`` makes the one node; ``join`` does all of it to
a model, by the rules ``turned_nodes`` and ``both_directions``.
"""

__all__: list[str] = []
