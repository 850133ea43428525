"""Read the operators of a body.

There is one function per operator. It returns the abstract values of the operator's outputs, which are exact, or None.
"""

__all__: list[str] = []
