"""Where optimised models are kept, and how many bytes of them."""

import os
import sys
from pathlib import Path

__all__ = ["DEFAULT_SIZE", "cache_folder"]

DEFAULT_SIZE = 4 << 30
_VARIABLE = "ORTSCAN_CACHE_DIR"


def cache_folder(given: str | None = None) -> Path:
    """Give the folder: the one given, the one the environment names (``ORTSCAN_CACHE_DIR``), or the user's own on this system."""
    named = given or os.environ.get(_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ortscan" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "ortscan"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ortscan"
