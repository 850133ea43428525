"""Analyses of a model that rules need. They do not change the model.

Nothing here creates, moves or removes a node.
"""

__all__: list[str] = []
