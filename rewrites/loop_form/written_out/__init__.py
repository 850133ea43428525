"""Steps that a model has written out one after the other: rows of tensors, nodes that are alike, and what ties them together."""

__all__: list[str] = []
