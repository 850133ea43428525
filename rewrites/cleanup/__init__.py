"""Work that is constant, done twice, loop-invariant, or for nobody. What a loop computes for each step stays as it is."""

__all__: list[str] = []
