"""Which sizes and trip counts are tried: what the operators say of them, and the rows of numbers tried together."""

__all__: list[str] = []
