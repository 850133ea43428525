"""Changes of a Scan's form that more than a rule makes."""

__all__: list[str] = []
