"""Read the operators of a body. One function per operator returns the exact abstract values of its outputs, or None."""

__all__: list[str] = []
