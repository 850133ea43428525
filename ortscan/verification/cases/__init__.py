"""Which cases are tried: sizes and kinds of values together, from a model and what the caller fixed to feeds."""

__all__: list[str] = []
