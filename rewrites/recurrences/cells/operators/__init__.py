"""Read the operators of a body.

There is one function per operator. It returns the abstract values of the operator's outputs, or None if it cannot compute them
exactly.
"""

__all__: list[str] = []
