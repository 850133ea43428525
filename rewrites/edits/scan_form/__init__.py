"""Changes of a Scan's form that several rules, or migration too, make."""

__all__: list[str] = []
