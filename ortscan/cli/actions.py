"""Options that print and exit: ``--version`` for bug reports, ``--list-passes`` and ``--list-codes``."""

import argparse
import platform
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ortscan.base import __version__
from ortscan.cli.streams import naming_stdout_in_errors

__all__ = ["ListCodes", "ListPasses", "VersionAction"]


class _PrintAndStop(argparse.Action):
    """An option that prints lines and exits with code 0."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print the lines and exit with code 0."""
        lines = list(self._lines())
        with naming_stdout_in_errors():
            print(*lines, sep="\n")
        parser.exit()

    def _lines(self) -> Iterable[str]:
        raise NotImplementedError


class VersionAction(_PrintAndStop):
    """Print the versions of ortscan and of the packages it runs on."""

    def _lines(self) -> Iterable[str]:
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
        return [f"ortscan {__version__} ({parts})"]


class ListPasses(_PrintAndStop):
    """Print the passes in the order in which they run."""

    def _lines(self) -> Iterable[str]:
        from ortscan.rule_choice import on_request_names, rule_homes

        asked = set(on_request_names())
        docs = {name: (sys.modules[module].__doc__ or "").splitlines()[0] for name, module in rule_homes().items()}
        return _aligned([(name, f"{doc}{' (only if named)' if name in asked else ''}") for name, doc in docs.items()])


class ListCodes(_PrintAndStop):
    """Print the reason codes."""

    def _lines(self) -> Iterable[str]:
        from ortscan.report.codes import CODES

        return _aligned(sorted((code, entry.meaning) for code, entry in CODES.items()))


def _aligned(pairs: Sequence[tuple[str, str]]) -> Iterable[str]:
    width = max(len(name) for name, _ in pairs)
    return (f"{name:{width}}  {meaning}" for name, meaning in pairs)
