"""The inputs of a comparison: what the caller passes, and the sizes and values that are generated for the rest."""

__all__: list[str] = []
