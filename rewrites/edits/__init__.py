"""What rules are made of: the patch, and changes that several of them share."""

__all__: list[str] = []
