"""The folder of optimised models: one folder for each, put there in one step, the one not used for longest dropped first."""

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ortscan.cache.checks import checks_of, is_whole
from ortscan.cache.facts import as_bytes, read_facts
from ortscan.cache.given import is_made_from, rest_of, runs_between
from ortscan.cache.location import DEFAULT_SIZE
from ortscan.cache.notes import Notes
from ortscan.cache.own_files import write_own
from ortscan.cache.structure import has_structure, structure_of
from ortscan.cache.well_formed import is_well_formed
from ortscan.cache.writing import is_spare, listed, make_folder, spare_name

__all__ = ["MODEL", "PARTS", "Entry", "Store", "Usage"]

PARTS = ("models", "files", "locks")
"""The folders in that of a store."""

MODEL = "model.onnx"
"""The file of the model in the folder of an entry."""

_FACTS, _REST = "entry.json", "given.bin"
_NAME = re.compile(r"[0-9a-f]{64}")
_STRAY_SECONDS = 3600
_ATTEMPTS = 20
_MOST_ENTRIES = 1024


@dataclass(frozen=True)
class Entry:
    """One optimised model, or the fact that there was nothing to do: ``facts`` says, ``model`` is None then."""

    folder: Path
    facts: Mapping[str, Any]

    @property
    def model(self) -> Path | None:
        """The model file."""
        return self.folder / MODEL if self.facts["bytes"] else None

    @property
    def can_be_opened(self) -> bool:
        """Whether the model file is what was put there but for values of large weights, which have not been looked at."""
        return self.model is None or has_structure(self.model, self.facts["bytes"], self.facts["structure"])

    @property
    def is_whole(self) -> bool:
        """Whether the model file is what was put there: all of it is read."""
        return self.model is None or is_whole(self.model, self.facts["bytes"], self.facts["checks"])

    @property
    def has_large_weights(self) -> bool:
        """Whether ``is_whole`` looks at more than ``can_be_opened``."""
        return bool(self.facts["structure"][1])

    def is_made_from(self, given: bytes) -> bool:
        """Whether this was made from the bytes ``given``, and its model file is what was put there: all of it is read."""
        known = self.facts.get("given")
        if known is None:
            return False
        rest = self.folder / _REST
        return is_made_from(given, known["bytes"], known["runs"], rest, self.model, self.facts["checks"])


@dataclass(frozen=True)
class Usage:
    """What is in a store."""

    folder: Path
    models: int
    bytes: int
    limit: int


class Store:
    """Optimised models below ``folder``, at most ``limit`` bytes of them. Several processes may use one folder at once.

    Nothing is created before something is put there. What has not one of the store's own names is never touched.
    """

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = DEFAULT_SIZE if limit is None else limit
        self.notes = Notes(folder / PARTS[1])
        self._models = folder / PARTS[0]

    def find(self, key: str) -> Entry | None:
        """Return the entry of this name, or None; its model has not been looked at. Raises ValueError where ``key`` is no name."""
        facts = read_facts(self._place_of(key) / _FACTS)
        if facts is None or facts.get("key") != key or not is_well_formed(facts):
            return None
        return Entry(self._place_of(key), facts)

    def find_in(self, folder: Path) -> Entry | None:
        """Return the entry that ``folder`` is, or None."""
        return self.find(folder.name) if _NAME.fullmatch(folder.name) else None

    def get(self, key: str) -> Entry | None:
        """Return the entry of this name, which can be opened, or None; one that cannot is dropped."""
        entry = self.find(key)
        if entry is None:
            return None
        if not entry.can_be_opened:
            self.drop(key)
            return None
        self.mark_used(entry)
        return entry

    def mark_used(self, entry: Entry) -> None:
        """Let ``entry`` be the one that was used last."""
        with suppress(OSError):
            os.utime(entry.folder / _FACTS)

    def put(self, key: str, facts: Mapping[str, Any], content: bytes = b"", given: bytes | None = None) -> Entry:
        """Keep ``facts`` and an optimised model; ``given``: the bytes it was made from, to be known again without a digest.

        Raises OSError; then there is nothing new.
        """
        stated = {**facts, "key": key, "bytes": len(content), "checks": checks_of(content), "structure": structure_of(content)}
        make_folder(self._models)
        aside, final = spare_name(self._models), self._place_of(key)
        make_folder(aside)
        try:
            if content:
                write_own(aside / MODEL, content)
            if given is not None:
                runs = runs_between(content, given)
                write_own(aside / _REST, rest_of(given, runs))
                stated["given"] = {"bytes": len(given), "runs": runs}
            write_own(aside / _FACTS, as_bytes(stated))
            self._place(aside, key)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._trim(keep=final)
        return Entry(final, stated)

    def _place(self, aside: Path, key: str) -> None:
        """Put a finished entry into its place; where others put theirs there at the same time, one of them is there in the end."""
        for attempt in range(_ATTEMPTS):
            self.drop(key)
            try:
                os.rename(aside, self._place_of(key))
                return
            except OSError:
                if self.find(key) is not None:
                    return
                if attempt == _ATTEMPTS - 1:
                    raise

    def _place_of(self, key: str) -> Path:
        if not _NAME.fullmatch(key):
            raise ValueError(f"{key!r} is not the name of an entry")
        return self._models / key

    def drop(self, key: str) -> None:
        """Forget the entry of this name."""
        self._drop(self._place_of(key))

    def usage(self) -> Usage:
        """Count what is there. Raises OSError where the folder cannot be read."""
        found = list(self.folders())
        models = sum(1 for folder, _, _ in found if (folder / MODEL).exists())
        return Usage(self.folder, models, sum(size for _, size, _ in found), self.limit)

    def clear(self) -> Usage:
        """Forget everything that nobody is about to write; give what was there. Raises OSError where something stays."""
        usage = self.usage()
        for folder, _, used in self.folders():
            if not _is_being_written(folder, used):
                self._take_away(folder)
        self.notes.clear()
        return usage

    def folders(self) -> Iterator[tuple[Path, int, float]]:
        """Return each entry, and what is left of one, with its bytes and the time of its last use. Raises OSError."""
        try:
            found = listed(self._models)
        except FileNotFoundError:
            return
        for item in found:
            if not (_NAME.fullmatch(item.name) or is_spare(item.name)):
                continue
            with suppress(OSError):
                if item.is_dir(follow_symlinks=False):
                    files = {file.name: file.stat(follow_symlinks=False) for file in listed(item)}
                    facts = files.get(_FACTS)
                    last = max((file.st_mtime for file in files.values()), default=item.stat().st_mtime)
                    yield Path(item.path), sum(file.st_size for file in files.values()), facts.st_mtime if facts else last

    def _trim(self, keep: Path) -> None:
        with suppress(OSError):
            entries = sorted(self.folders(), key=lambda entry: entry[2])
            total, count = sum(size for _, size, _ in entries), len(entries)
            for folder, size, used in entries:
                if folder == keep or _is_being_written(folder, used):
                    continue
                if is_spare(folder.name) or total > self.limit or count > _MOST_ENTRIES:
                    self._drop(folder)
                    total, count = total - size, count - 1

    def _drop(self, folder: Path) -> None:
        with suppress(OSError):
            self._take_away(folder)

    def _take_away(self, folder: Path) -> None:
        """Take an entry away in one step, so that nobody finds half of it; who has it open keeps it. Raises OSError."""
        aside = spare_name(self._models)
        with suppress(FileNotFoundError):
            os.rename(folder, aside)
            if aside.is_symlink() or not aside.is_dir():
                aside.unlink()
            else:
                shutil.rmtree(aside, ignore_errors=True)


def _is_being_written(folder: Path, used: float) -> bool:
    return is_spare(folder.name) and time.time() - used < _STRAY_SECONDS
