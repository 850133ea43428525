"""How closely two results must agree: scales, roundings, and how far the original itself moves."""

__all__: list[str] = []
