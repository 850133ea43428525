"""The folder of optimised models: one folder for each, put there in one step, the one not used for longest dropped first."""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ortscan.cache.location import DEFAULT_SIZE
from ortscan.cache.writing import make_folder, spare_name

__all__ = ["MODEL", "Entry", "Store", "Usage"]

MODEL = "model.onnx"
_FACTS = "entry.json"
_STRAY_SECONDS = 3600
_ATTEMPTS = 20


@dataclass(frozen=True)
class Entry:
    """One optimised model, or the fact that there was nothing to do: ``facts`` says, ``model`` is None then."""

    folder: Path
    facts: Mapping[str, Any]

    @property
    def model(self) -> Path | None:
        """The model file."""
        return self.folder / MODEL if self.facts.get("bytes") else None


@dataclass(frozen=True)
class Usage:
    """What is in a store."""

    folder: Path
    models: int
    bytes: int
    limit: int


class Store:
    """Optimised models below ``folder``, at most ``limit`` bytes of them. Several processes may use one folder at once.

    Nothing is created before something is put there.
    """

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self.folder = folder
        self.limit = DEFAULT_SIZE if limit is None else limit
        self._models = folder / "models"

    @property
    def notes(self) -> Path:
        """The folder of what is known of files."""
        return self.folder / "files"

    def get(self, key: str) -> Entry | None:
        """Give the entry of this name, whole, or None."""
        folder = self._models / key
        facts = _facts(folder)
        if facts is None:
            return None
        entry = Entry(folder, facts)
        if entry.model is not None and _size_of(entry.model) != facts["bytes"]:
            return None
        with suppress(OSError):
            os.utime(folder / _FACTS)
        return entry

    def put(self, key: str, facts: Mapping[str, Any], write: Callable[[Path], object] | None = None) -> Entry:
        """Keep a model that ``write`` writes to the path it is given (with what belongs beside it), or only ``facts``.

        Raises OSError, and what ``write`` raises; then there is nothing new.
        """
        make_folder(self._models)
        aside, final = spare_name(self._models), self._models / key
        aside.mkdir(mode=0o700)
        try:
            if write is not None:
                write(aside / MODEL)
            stated = {**facts, "bytes": _size_of(aside / MODEL), "made": time.time()}
            (aside / _FACTS).write_text(json.dumps(stated), encoding="utf-8")
            for file in aside.iterdir():
                _flush(file)
            self._place(aside, key)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        self._trim(keep=final)
        return Entry(final, stated)

    def _place(self, aside: Path, key: str) -> None:
        """Put a finished entry into its place; where others put theirs there at the same time, one of them is there in the end."""
        for attempt in range(_ATTEMPTS):
            self._drop(self._models / key)
            try:
                os.rename(aside, self._models / key)
                return
            except OSError:
                if self.get(key) is not None:
                    return
                if attempt == _ATTEMPTS - 1:
                    raise

    def drop(self, key: str) -> None:
        """Forget the entry of this name."""
        self._drop(self._models / key)

    def usage(self) -> Usage:
        """Count what is there."""
        found = list(self._entries())
        models = sum(1 for folder, _, _ in found if (folder / MODEL).exists())
        return Usage(self.folder, models, sum(size for _, size, _ in found), self.limit)

    def clear(self) -> Usage:
        """Forget everything; give what was there."""
        usage = self.usage()
        for folder in (self._models, self.notes):
            shutil.rmtree(folder, ignore_errors=True)
        return usage

    def _entries(self) -> Iterator[tuple[Path, int, float]]:
        """Give each entry with its bytes and the time of its last use."""
        with suppress(OSError):
            for folder in self._models.iterdir():
                with suppress(OSError):
                    size = sum(file.stat().st_size for file in folder.iterdir())
                    marked = folder / _FACTS
                    yield folder, size, (marked if marked.exists() else folder).stat().st_mtime

    def _trim(self, keep: Path) -> None:
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        total = sum(size for _, size, _ in entries)
        for folder, size, used in entries:
            stray = folder.name.startswith("tmp-")
            if folder == keep or (stray and time.time() - used < _STRAY_SECONDS):
                continue
            if stray or total > self.limit:
                self._drop(folder)
                total -= size

    def _drop(self, folder: Path) -> None:
        """Take an entry away in one step, so that nobody finds half of it; who has it open keeps it."""
        aside = spare_name(self._models)
        with suppress(OSError):
            os.rename(folder, aside)
            shutil.rmtree(aside, ignore_errors=True)


def _facts(folder: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads((folder / _FACTS).read_bytes())
    except (OSError, ValueError):
        return None
    return facts if isinstance(facts, dict) and isinstance(facts.get("bytes"), int) else None


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _flush(file: Path) -> None:
    with file.open("rb") as opened, suppress(OSError):
        os.fsync(opened.fileno())
