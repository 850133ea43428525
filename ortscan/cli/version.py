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

        from ortscan.native.library import library_path

        try:
            import onnxruntime
        except ModuleNotFoundError:
            runtime = "no onnxruntime"
        else:
            runtime = f"onnxruntime {onnxruntime.__version__}"
        engine = "no native loop engine" if library_path() is None else "native loop engine"
        versions = [f"{module.__name__} {module.__version__}" for module in (onnx, onnx_ir)]
        parts = ", ".join([*versions, runtime, engine, f"Python {platform.python_version()}"])
        with printing():
            print(f"ortscan {__version__} ({parts})")
        parser.exit()
