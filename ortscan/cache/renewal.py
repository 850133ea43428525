"""Lets notes of files outlive second names (hard links) of the files, which move the time of a file's last change of any kind.

That is the one change that is let pass. A note is renewed where the file was as the note says right before the names were made, did
not change while they stood, and differs in that one time when they are gone. Otherwise the file is read again when it is next asked
for: it may have been written, and its other times set back.
"""

from collections.abc import Sequence
from contextlib import suppress

from ortscan.cache.digest import Identity, identity_of_file, note_digests, noted_digests
from ortscan.cache.notes import Notes

__all__ = ["Renewal"]


class Renewal:
    """The files at ``paths`` around the time in which they have second names: call all methods once, in their order."""

    def __init__(self, paths: Sequence[str], notes: Notes) -> None:
        self._paths, self._notes = paths, notes
        self._known: dict[str, Identity] = {}
        self._linked: dict[str, Identity] = {}

    def begin(self) -> None:
        """Look at the files right before they get second names."""
        noted = noted_digests(self._paths, self._notes)
        self._known = {path: note[0] for path, note in noted.items() if _identity(path) == note[0]}

    def linked(self) -> None:
        """Look at them now that they have them."""
        self._linked = self._changed_in_that_alone(self._known)

    def unlinking(self) -> None:
        """Look at them before these names are taken away: nothing may have changed."""
        self._linked = {path: identity for path, identity in self._linked.items() if _identity(path) == identity}

    def end(self) -> None:
        """Renew the notes of those that nothing else happened to."""
        noted = noted_digests(self._paths, self._notes)
        renewed = {
            path: (identity, noted[path][1])
            for path, identity in self._changed_in_that_alone(self._linked).items()
            if path in noted and noted[path][0] == self._known[path] != identity
        }
        if renewed:
            note_digests(self._paths, self._notes, noted | renewed)

    def _changed_in_that_alone(self, before: dict[str, Identity]) -> dict[str, Identity]:
        now = {path: _identity(path) for path in before}
        return {path: identity for path, identity in now.items() if identity is not None and identity[:-1] == before[path][:-1]}


def _identity(path: str) -> Identity | None:
    with suppress(OSError):
        return identity_of_file(path)
    return None
