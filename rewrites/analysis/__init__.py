"""Analyses that rules apply to a model.

No analysis creates, moves or removes a node.
"""

__all__: list[str] = []
