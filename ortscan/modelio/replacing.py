"""Writes files aside and puts all of them into place at the end, or none: a failure leaves what was there, and nothing else."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

__all__ = ["Replacement"]


class Replacement:
    """A context in which ``open`` gives files to write; ``commit`` replaces their destinations, in the order they were opened.

    Every file is written in its destination's folder. A replaced file's permissions (and owner, where allowed) are kept.
    Raises OSError.
    """

    def __init__(self) -> None:
        self._written: list[tuple[BinaryIO, Path, Path]] = []
        self._strays: set[Path] = set()

    def __enter__(self) -> "Replacement":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file, _, _ in self._written:
            with suppress(OSError):
                file.close()
        for path in self._strays:
            with suppress(OSError):
                path.unlink()

    def open(self, final: Path) -> BinaryIO:
        """Give a new empty file that will become ``final``."""
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
        """Put all files into place; if that fails half-way, the files already replaced are put back."""
        for file, _, _ in self._written:
            file.close()
        undo: list[tuple[Path, Path | None]] = []
        try:
            for _, aside, final in self._written:
                undo.append((final, self._second_name(final)))
                os.replace(aside, final)
        except BaseException:
            for final, kept in reversed(undo):
                self._put_back(final, kept)
            raise

    def _aside(self, final: Path) -> Path:
        path = final.with_name(f".ortscan-{secrets.token_hex(6)}.tmp")
        self._strays.add(path)
        return path

    def _second_name(self, final: Path) -> Path | None:
        if not os.path.lexists(final):
            return None
        kept = self._aside(final)
        try:
            os.link(final, kept, follow_symlinks=False)
        except (OSError, NotImplementedError):
            os.replace(final, kept)
        return kept

    def _put_back(self, final: Path, kept: Path | None) -> None:
        try:
            if kept is None:
                final.unlink(missing_ok=True)
            else:
                os.replace(kept, final)
        except OSError:
            self._strays.discard(kept or final)
