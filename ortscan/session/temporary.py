"""A folder that lasts as long as the object that stands for it."""

import shutil
import tempfile
import weakref
from pathlib import Path

__all__ = ["TemporaryFolder"]


class TemporaryFolder:
    """A new folder, removed with this object or at the end of the process, without a word about it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="ortscan-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
