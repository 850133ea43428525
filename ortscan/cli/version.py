"""``--version``: what a bug report needs."""

import argparse
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["VersionAction", "ortscan_version"]


def ortscan_version() -> str:
    """Give the installed version, or ``unknown`` in a source tree that was never installed."""
    try:
        return version("ortscan")
    except PackageNotFoundError:
        return "unknown"


class VersionAction(argparse.Action):
    """Prints versions and stops."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print, and leave with 0."""
        parts = ", ".join(f"{name} {_installed(name)}" for name in ("onnx", "onnx-ir", "onnxruntime"))
        print(f"ortscan {ortscan_version()} ({parts}, Python {platform.python_version()})")
        parser.exit()


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed under this name"
