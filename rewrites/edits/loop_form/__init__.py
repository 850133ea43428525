"""States of a Loop as stacked results, and its condition as a trip count."""

__all__: list[str] = []
