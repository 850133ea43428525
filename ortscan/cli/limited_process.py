"""The process in which a command keeps to its limits."""

import sys

from ortscan.base import child_process
from ortscan.cli.errors import exit_code_of
from ortscan.cli.parser import build_parser

__all__ = ["serve"]


def serve() -> int:
    """Run the command that the arguments name after the bytes it may take, 0 for any number; return its exit code."""
    memory, *argv = sys.argv[1:]
    if int(memory):
        import onnxruntime  # noqa: F401  # what every command takes does not count

        import ortscan.api  # noqa: F401

        child_process.limit_memory(int(memory))
    return int(exit_code_of(lambda: build_parser().parse_args(argv), argv, limited=False))
