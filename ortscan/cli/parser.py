"""The words the command line understands."""

import argparse

from ortscan.cli import explain, migrate, optimize, verify
from ortscan.cli.version import VersionAction

__all__ = ["build_parser"]


def build_parser() -> argparse.ArgumentParser:
    """Make the parser; each verb's namespace holds the function to run as ``run``."""
    parser = argparse.ArgumentParser(
        prog="ortscan",
        description="Takes Scan and Loop out of ONNX models, and proves on onnxruntime that nothing changed.",
        epilog="exit codes: 0 done, 1 error, 2 wrong usage, 3 verification failed, 4 nothing changed under --strict",
    )
    parser.add_argument("--version", action=VersionAction, help="show the versions of ortscan and what it runs on")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    optimize.add(verbs)
    migrate.add(verbs)
    explain.add(verbs)
    verify.add(verbs)
    return parser
