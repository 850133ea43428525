"""Answers questions of rules about a model without changing it.

Nothing here creates, moves or removes a node.
"""

__all__: list[str] = []
