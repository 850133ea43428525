"""The folders an attack lives in, and whether it has kept to them."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Box"]

_OF_ONNXRUNTIME = ".ses"
"""Version 1.32 writes this where it is imported: a time and a random number."""

_OWN = ("work", "home", "cache", "tmp")


@dataclass(frozen=True)
class Box:
    """``work``: the working folder. ``outside``: a folder that nobody may touch. ``tmp``: for temporary files, empty at the end."""

    root: Path

    @classmethod
    def make(cls, root: Path) -> "Box":
        """Make the folders below ``root``."""
        box = cls(root)
        for name in (*_OWN, "outside", "outside/folder"):
            (root / name).mkdir()
        (box.outside / "secret").write_bytes(b"\x00\x00\x80\x3f" * 4096)
        (box.outside / "folder" / "precious").write_bytes(b"precious")
        return box

    @property
    def work(self) -> Path:
        """The working folder."""
        return self.root / "work"

    @property
    def outside(self) -> Path:
        """A folder beside it."""
        return self.root / "outside"

    @property
    def cache(self) -> Path:
        """The cache folder."""
        return self.root / "cache"

    @property
    def tmp(self) -> Path:
        """The folder for temporary files."""
        return self.root / "tmp"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a process that lives here."""
        home = str(self.root / "home")
        folders = {"HOME": home, "XDG_CACHE_HOME": f"{home}/.cache", "ORTSCAN_CACHE_DIR": str(self.cache), "TMPDIR": str(self.tmp)}
        return {**os.environ, **folders}

    def around(self) -> dict[str, tuple[object, ...]]:
        """Give what is outside the folders of its own, with what tells a change."""
        found: dict[str, tuple[object, ...]] = {}
        for folder, names, files in os.walk(self.root):
            if Path(folder) == self.root:
                names[:] = [name for name in names if name not in _OWN]
            for name in (*names, *files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                content = Path(path).read_bytes() if stat.S_ISREG(status.st_mode) else b""
                found[path] = (status.st_mode, status.st_ino, status.st_nlink, content)
        return found

    def left(self) -> list[str]:
        """Give the temporary files that are still there."""
        return sorted(set(os.listdir(self.tmp)) - {_OF_ONNXRUNTIME})
