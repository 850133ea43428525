"""The store of optimised models, with a folder for each entry.

    folder/models/<key>/entry.json, model.onnx        folder/locks/<key>

An entry is written under a temporary name and then renamed. When the store is full, the least recently used entries are removed
first. Nothing is synced to disk. If a power failure damages an entry, the damage is detected on reading, and the model is optimised
again.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ortscan.cache.digests import checksum_of_file
from ortscan.cache.facts import Facts, as_bytes, facts_from
from ortscan.cache.location import DEFAULT_SIZE
from ortscan.cache.ownership import make_folder, read_own, write_own

__all__ = ["MODEL", "PARTS", "Entry", "Store", "Usage"]

PARTS = ("models", "locks")
"""The subfolders of a store."""

MODEL = "model.onnx"
"""The name of the model file of an entry."""

_FACTS = "entry.json"
_NAME = re.compile(r"[0-9a-f]{64}")
_SPARE = re.compile(r"tmp-\d+-[0-9a-f]{12}")
_STRAY_SECONDS = 3600
_ATTEMPTS = 20
_MOST_ENTRIES = 1024


@dataclass(frozen=True)
class Entry:
    """A cache entry: its folder and its facts. An entry has no model if there was nothing to optimise."""

    folder: Path
    facts: Facts

    @property
    def model(self) -> Path | None:
        """The model file, or None if the entry has no model."""
        return self.folder / MODEL if self.facts.checksum else None

    def is_undamaged(self) -> bool:
        """Return True if the model file is undamaged. This reads the whole file."""
        with suppress(OSError):
            return self.model is None or checksum_of_file(self.model) == self.facts.checksum
        return False


@dataclass(frozen=True)
class Usage:
    """The number of models in a store, their size in bytes, and the largest allowed size."""

    folder: Path
    models: int
    bytes: int
    limit: int


class Store:
    """The optimised models below ``folder``, at most ``limit`` bytes.

    Several processes may use a folder at once.

    The folder is created with the first entry. Other files in the folder are never changed or removed. They are recognised by their
    names, which differ from the names that the store uses.
    """

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = DEFAULT_SIZE if limit is None else limit
        self._models = folder / PARTS[0]

    def find(self, key: str) -> Entry | None:
        """Return the entry ``key``, or None if there is no such entry. The model of the entry is not checked.

        Raise ValueError if ``key`` is not a valid name of an entry.
        """
        folder = self._folder_of(key)
        with suppress(OSError):
            facts = facts_from(read_own(folder / _FACTS))
            return Entry(folder, facts) if facts is not None and facts.key == key else None
        return None

    def get(self, key: str) -> Entry | None:
        """Return the entry ``key`` and mark it as used. If its model is damaged, remove it and return None."""
        entry = self.find(key)
        if entry is None:
            return None
        if not entry.is_undamaged():
            self.drop(key)
            return None
        with suppress(OSError):
            os.utime(entry.folder / _FACTS)
        return entry

    def put(self, key: str, facts: Facts, content: bytes = b"") -> Entry:
        """Store ``facts`` and the optimised model ``content``.

        If that fails, raise OSError and leave the store unchanged.
        """
        final, temporary = self._folder_of(key), self._temporary_path()
        make_folder(self._models)
        make_folder(temporary)
        try:
            if content:
                write_own(temporary / MODEL, content)
            facts = replace(facts, key=key, checksum=checksum_of_file(temporary / MODEL) if content else "")
            write_own(temporary / _FACTS, as_bytes(vars(facts)))
            self._rename(temporary, key)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        self._trim(keep=final)
        return Entry(final, facts)

    def drop(self, key: str) -> None:
        """Remove the entry ``key``."""
        with suppress(OSError):
            self._remove(self._folder_of(key))

    def entries(self) -> Iterator[tuple[Entry, int, float]]:
        """Yield each readable entry, its size in bytes and the time of its last use.

        Raise OSError if the folder is unreadable.
        """
        for folder, size, used in self.folders():
            entry = self.find(folder.name) if _NAME.fullmatch(folder.name) else None
            if entry is not None:
                yield entry, size, used

    def folders(self) -> Iterator[tuple[Path, int, float]]:
        """Yield the folder of each entry, finished or not, its size in bytes and the time of its last use.

        Raise OSError if the store cannot be read.
        """
        with suppress(FileNotFoundError):
            for item in _listed(self._models):
                if _NAME.fullmatch(item.name) or _is_temporary(item.name):
                    with suppress(OSError):
                        if item.is_dir(follow_symlinks=False):
                            files = {file.name: file.stat(follow_symlinks=False) for file in _listed(item)}
                            times = [file.st_mtime for file in files.values()] or [item.stat().st_mtime]
                            used = files[_FACTS].st_mtime if _FACTS in files else max(times)
                            yield Path(item.path), sum(file.st_size for file in files.values()), used

    def usage(self) -> Usage:
        """Count the models and their bytes. Raise OSError if the folder cannot be read."""
        folders = list(self.folders())
        models = sum((folder / MODEL).exists() for folder, _, _ in folders)
        return Usage(self.folder, models, sum(size for _, size, _ in folders), self.limit)

    def clear(self) -> Usage:
        """Remove all entries except those that are being written. Return the usage before the removal.

        Raise OSError if a folder cannot be removed.
        """
        usage = self.usage()
        for folder, _, used in self.folders():
            if not _is_being_written(folder, used):
                self._remove(folder)
        return usage

    def _folder_of(self, key: str) -> Path:
        if not _NAME.fullmatch(key):
            raise ValueError(f"{key!r} is not the name of an entry")
        return self._models / key

    def _temporary_path(self) -> Path:
        """Return a unique path for a folder that is being written or removed."""
        return self._models / f"tmp-{os.getpid()}-{secrets.token_hex(6)}"

    def _rename(self, temporary: Path, key: str) -> None:
        """Rename a finished entry to its final name.

        If several processes store the same entry at once, the entry of one of them remains.
        """
        for attempt in range(_ATTEMPTS):
            self.drop(key)
            try:
                os.rename(temporary, self._folder_of(key))
                return
            except OSError:
                if self.find(key) is not None:
                    return
                if attempt == _ATTEMPTS - 1:
                    raise

    def _trim(self, keep: Path) -> None:
        """Remove unfinished entries of crashed processes, and old entries while the store exceeds its limits.

        The least recently used entries are removed first. The folder ``keep`` is never removed.
        """
        with suppress(OSError):
            folders = sorted(self.folders(), key=lambda folder: folder[2])
            total, count = sum(size for _, size, _ in folders), len(folders)
            for folder, size, used in folders:
                if folder == keep or _is_being_written(folder, used):
                    continue
                if _is_temporary(folder.name) or total > self.limit or count > _MOST_ENTRIES:
                    with suppress(OSError):
                        self._remove(folder)
                    total, count = total - size, count - 1

    def _remove(self, folder: Path) -> None:
        """Remove an entry.

        The entry is renamed first, so that nobody reads a part of it. Its open files stay readable. Raise OSError if the entry
        cannot be renamed.
        """
        temporary = self._temporary_path()
        with suppress(FileNotFoundError):
            os.rename(folder, temporary)
            if temporary.is_symlink() or not temporary.is_dir():
                temporary.unlink()
            else:
                shutil.rmtree(temporary, ignore_errors=True)


def _listed(folder: str | os.PathLike[str]) -> list["os.DirEntry[str]"]:
    with os.scandir(folder) as items:
        return list(items)


def _is_temporary(name: str) -> bool:
    return _SPARE.fullmatch(name) is not None


def _is_being_written(folder: Path, used: float) -> bool:
    return _is_temporary(folder.name) and time.time() - used < _STRAY_SECONDS
