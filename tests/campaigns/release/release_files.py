"""Build the wheels and the sdist of a commit, with tools from a temporary environment."""

import os
import subprocess
import sys
from pathlib import Path

from ortscan.native.building import targets

__all__ = ["CommandFailed", "Tools", "build_files", "clone"]

_TOOLS = ["build>=1.2", "setuptools>=77", "twine>=6", "ziglang>=0.16"]


class CommandFailed(Exception):
    """A command of the release failed. The message is one sentence."""


class Tools:
    """A virtual environment with the packages that build and check a release."""

    def __init__(self, folder: Path) -> None:
        """Create the environment in ``folder``."""
        _run([sys.executable, "-m", "venv", folder])
        self._python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        self.run("pip", "install", *_TOOLS)

    def run(self, module: str, *arguments: str | Path, native: bool = True) -> None:
        """Run a Python module. Raise CommandFailed if it fails. ``native`` is False for a build without the native library."""
        _run([self._python, "-I", "-m", module, *arguments], ORTSCAN_BUILD_NATIVE="1" if native else "0")


def clone(repository: Path, folder: Path) -> Path:
    """Clone the current commit of ``repository`` into ``folder``, and return ``folder``."""
    _run(["git", "clone", "--quiet", repository, folder])
    return folder


def build_files(source: Path, tools: Tools, folder: Path) -> list[Path]:
    """Build a release from a clone.

    Args:
        source: the folder of the clone.
        tools: the environment that builds.
        folder: where the files are written.

    Returns:
        The paths of the files by name: first the pure wheel, then a wheel for each platform, last the sdist.
    """
    build = ("build", "--no-isolation", source, "--outdir", folder)
    tools.run(*build, "--wheel", native=False)
    for target in targets():
        print(f"building for {target}", file=sys.stderr, flush=True)
        tools.run(*build, "--wheel", f"-Ctarget={target}")
    tools.run(*build, "--sdist")
    return sorted(folder.iterdir())


def _run(command: list[str | Path], **environment: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    if done.returncode:
        output = " ".join((done.stderr or done.stdout).split())
        raise CommandFailed(f'"{" ".join(map(str, command))}" failed with {done.returncode}: {output[-400:]}')
