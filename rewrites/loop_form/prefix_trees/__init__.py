"""Finds prefix trees: nodes that compute all prefixes of an associative operator, without a loop."""

__all__: list[str] = []
