"""The inputs of a comparison: those of the caller, and generated sizes and values of the rest."""

__all__: list[str] = []
