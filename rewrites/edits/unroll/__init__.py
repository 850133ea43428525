"""Steps of a loop written one after the other."""

__all__: list[str] = []
