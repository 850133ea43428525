"""Rules that hand a loop to the library of loop plans."""

__all__: list[str] = []
