"""The way of a model in order: prepared, rewritten, checked, compared. What a rewrite does is in ``rewrites``."""

__all__: list[str] = []
