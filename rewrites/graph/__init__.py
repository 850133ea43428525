"""Graphs of values and nodes: walking, naming, building, moving and replacing; and the context that rules share."""

__all__: list[str] = []
