"""What is asked of files: before any long work whether it can succeed, afterwards how large they are."""

import stat
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from rewrites.errors import ModelFileError

if TYPE_CHECKING:
    from ortscan.modelio import LoadedModel

__all__ = ["check_readable", "check_writable", "size_of_model", "size_of_source"]


def check_readable(path: str) -> None:
    """Raise ModelFileError, or OSError, unless ``path`` is a regular file: it is read more than once, so a pipe will not do."""
    if Path(path).is_dir():
        raise ModelFileError(f"{path} is a folder, not a file.")
    if not stat.S_ISREG(Path(path).stat().st_mode):
        raise ModelFileError(f"{path} is not a regular file.")


def check_writable(path: str) -> None:
    """Raise ModelFileError unless a file can be created or replaced at ``path``; nothing is created."""
    from ortscan.modelio.destination import destination

    destination(path)


def size_of_source(path: str, loaded: "LoadedModel") -> int:
    """Count the bytes of the file at ``path``, which ``loaded`` came from, and of its external data."""
    return Path(path).stat().st_size + sum(file.size for file in loaded.files)


def size_of_model(path: str) -> int:
    """Count the bytes of the file at ``path``, which ortscan wrote, and of its external data."""
    file = Path(path)
    total = file.stat().st_size
    if any(file.parent.glob(f"{escape(file.name)}*.data")):
        from ortscan.modelio.protos import tensors_in
        from ortscan.modelio.reading import read

        entries = (entry for tensor in tensors_in(read(file)) for entry in tensor.external_data)
        total += sum((file.parent / name).stat().st_size for name in {entry.value for entry in entries if entry.key == "location"})
    return total
