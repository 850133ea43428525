"""How each operator of a body is read: a function returns the abstract values of its outputs, exactly, or None."""

__all__: list[str] = []
