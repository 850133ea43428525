"""Read HTML pages: check that all tags are closed and that nothing is loaded from elsewhere."""

from collections import Counter
from html.parser import HTMLParser

__all__ = ["tags_of"]

_VOID = frozenset({"meta", "input"})


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] += 1
        assert not any(name in ("src", "href", "xlink:href") or name.startswith("on") for name, _ in attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags_of(page: str) -> Counter[str]:
    """Return how often each tag occurs."""
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    return tags.seen
