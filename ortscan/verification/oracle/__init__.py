"""Copies of the original that define the right result: as the operators are specified, in float64, or with rounding noise."""

__all__: list[str] = []
