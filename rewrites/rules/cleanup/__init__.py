"""Work that is constant, done twice, done in every step, or for nobody."""

__all__: list[str] = []
