"""What is known of a model without changing it: answers to questions that rules ask.

Nothing here builds, moves or removes a node.
"""

__all__: list[str] = []
