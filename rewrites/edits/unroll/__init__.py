"""Steps of a loop written one after the other, with the reads and stacks around them."""

__all__: list[str] = []
