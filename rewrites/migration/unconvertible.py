"""Why one node cannot be converted; ``operators`` turns it into an error that names the node."""

__all__ = ["NotKnownHere", "Unconvertible"]


class Unconvertible(Exception):
    """The node cannot be written in the next version of its operator; the message is the reason."""


class NotKnownHere(Unconvertible):
    """What the conversion needs (an attribute's value, a type, a rank) is not known where the node stands.

    In a function it may be known once the function is inlined.
    """
