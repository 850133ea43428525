"""Text from models made safe to show: a name may hold anything, terminal control sequences included."""

__all__ = ["one_line", "plain"]


def plain(text: object) -> str:
    """Give ``text`` with everything unprintable written as an escape such as ``\\x1b``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text))


def one_line(text: object) -> str:
    """Give ``text`` on a single line, printable: any white space becomes one space."""
    return plain(" ".join(str(text).split()))
