"""Writes files aside and puts all of them into place at the end, or none: a failure leaves what was there, and nothing else."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ortscan.base.temporary import insisting

__all__ = ["Replacement"]


class Replacement:
    """A context in which ``open`` gives files to write; ``commit`` replaces their destinations, in the order they were opened.

    Every file is written in its destination's folder. A replaced file's permissions (and owner, where allowed) are kept. Each
    destination is replaced in one step: other names of what was there (hard links) keep it. Where one of several cannot be
    replaced, those before it that are new are taken away again; so the last should be the only one that replaces something that
    is in use. Raises OSError.
    """

    def __init__(self) -> None:
        self._written: list[tuple[BinaryIO, Path, Path]] = []
        self._strays: set[Path] = set()
        self._new: set[Path] = set()
        self._was_done: bool | None = None

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        insisting(self.clear)

    def clear(self) -> None:
        """Take away all files that did not come into place."""
        self._was_done = self.is_done
        for file, _, _ in self._written:
            with suppress(OSError):
                file.close()
        if not self._was_done:
            self._strays.update(final for _, aside, final in self._written if final in self._new and not os.path.lexists(aside))
        for path in self._strays:
            with suppress(OSError):
                path.unlink()

    @property
    def is_done(self) -> bool:
        """Whether everything is in place; the disk is asked, for an interrupt may come right after the last step."""
        if self._was_done is not None:
            return self._was_done
        return bool(self._written) and not os.path.lexists(self._written[-1][1])

    def open(self, final: Path) -> BinaryIO:
        """Return a new empty file that will become ``final``."""
        aside = self._aside(final)
        file = aside.open("x+b")
        self._written.append((file, aside, final))
        if final.is_file() and not final.is_symlink():
            status = final.stat()
            with suppress(OSError, AttributeError):
                os.chown(aside, status.st_uid, status.st_gid)
            aside.chmod(stat.S_IMODE(status.st_mode))
        return file

    def commit(self) -> None:
        """Put all files into place; what replaces something is on the disk before."""
        replaces = any(os.path.lexists(final) for _, _, final in self._written)
        for file, _, _ in self._written:
            file.flush()
            if replaces:
                os.fsync(file.fileno())
            file.close()
        self._new.update(final for _, _, final in self._written if not os.path.lexists(final))
        for _, aside, final in self._written:
            os.replace(aside, final)

    def _aside(self, final: Path) -> Path:
        path = final.with_name(f".ortscan-{secrets.token_hex(6)}.tmp")
        self._strays.add(path)
        return path
