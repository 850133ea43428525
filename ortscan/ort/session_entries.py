"""Entries of onnxruntime's SessionOptions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime as ort

__all__ = ["entry_of"]


def entry_of(options: "ort.SessionOptions | None", key: str) -> str | None:
    """Return the entry ``key`` of SessionOptions, or None where there is none."""
    if options is None:
        return None
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:
        return None
