"""The inputs of a comparison: those that the caller passes, and the generated sizes and values of the rest."""

__all__: list[str] = []
