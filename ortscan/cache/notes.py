"""Small notes that only save work: where one is lost or damaged, what it said is found out again."""

import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from ortscan.cache.facts import as_bytes, read_facts
from ortscan.cache.writing import is_spare, listed, replace_file

__all__ = ["Notes"]

_NAME = re.compile(r"[0-9a-f]{64}\.json")
_MOST = 4096


class Notes:
    """Notes in ``folder``, each under a name of any kind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> dict[str, Any]:
        """Return the note of this name; nothing is in it where there is none."""
        return read_facts(self._file(name)) or {}

    def write(self, name: str, note: dict[str, Any]) -> None:
        """Write a note, where that is possible."""
        file = self._file(name)
        with suppress(OSError):
            is_new = not file.exists()
            replace_file(file, as_bytes(note))
            if is_new:
                self._trim()

    def clear(self) -> None:
        """Forget all notes."""
        for item in self._items():
            with suppress(OSError):
                os.unlink(item)

    def _file(self, name: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}.json"

    def _items(self) -> list["os.DirEntry[str]"]:
        try:
            found = listed(self.folder)
        except OSError:
            return []
        return [item for item in found if _NAME.fullmatch(item.name) or is_spare(item.name)]

    def _trim(self) -> None:
        """Forget the older half where there are too many."""
        items = self._items()
        if len(items) > _MOST:
            for item in sorted(items, key=lambda item: item.stat().st_mtime)[: _MOST // 2]:
                os.unlink(item)
