"""``--version``: what a bug report needs."""

import argparse
import platform
from collections.abc import Sequence
from typing import Any

from ortscan.base.release import __version__
from ortscan.cli.streams import printing

__all__ = ["VersionAction"]


class VersionAction(argparse.Action):
    """Prints versions and stops."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print, and leave with 0."""
        import onnx
        import onnx_ir

        try:
            import onnxruntime
        except ModuleNotFoundError:
            runtime = "no onnxruntime"
        else:
            runtime = f"onnxruntime {onnxruntime.__version__}"
        parts = ", ".join([*(f"{module.__name__} {module.__version__}" for module in (onnx, onnx_ir)), runtime])
        with printing():
            print(f"ortscan {__version__} ({parts}, Python {platform.python_version()})")
        parser.exit()
