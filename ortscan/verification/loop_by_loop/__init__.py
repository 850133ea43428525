"""Large models, compared loop by loop."""

__all__: list[str] = []
