"""Two recurrent nodes of opposite directions on one sequence as one bidirectional node.

``pairs`` finds them, ``meetings`` says where their results come together, ``write`` makes the one node; ``join`` does all of it to
a model, by the rule ``both_directions``.
"""

__all__: list[str] = []
