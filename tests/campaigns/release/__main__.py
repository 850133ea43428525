"""Build, check and install the files of a release: ``python -m tests.campaigns release FOLDER [--python PYTHON ...]``.

The current commit is cloned. Everything is built twice, from two clones, and must give the same bytes. FOLDER must not exist; in
the end it has a wheel for each platform, a pure wheel and the sdist. The exit code is 1 if a check fails.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.tags import sys_tags

from tests.campaigns.release.release_files import CommandFailed, Tools, build_files, clone
from tests.campaigns.release.wheel_checks import difference, platform_of, wheel_faults
from tests.support.installed import InstallationFailed, try_it

__all__ = ["main"]

_ROOT = Path(__file__).parents[3]


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns release", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--python", nargs="+", default=_pythons(), help="install the files with these; by default, all that are found"
    )
    arguments = parser.parse_args()
    try:
        arguments.folder.mkdir(parents=True)
        files = _built(arguments.folder.resolve())
        for file in files:
            print(f"{file.name}  {file.stat().st_size / 1e6:.2f} MB", flush=True)
        for line in _tried(files, arguments.python):
            print(line, flush=True)
    except FileExistsError:
        print(f"{arguments.folder} exists: name a new folder.", file=sys.stderr)
    except (CommandFailed, InstallationFailed) as error:
        print(error, file=sys.stderr)
    else:
        return 0
    return 1


def _built(folder: Path) -> list[Path]:
    """Build everything into ``folder`` and check it. Return the files. Raise CommandFailed if there are faults."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        tools = Tools(work / "tools")
        files = build_files(clone(_ROOT, work / "clone"), tools, folder)
        tools.run("twine", "check", "--strict", *files)
        _raise_faults(fault for wheel in files[:-1] for fault in wheel_faults(wheel, files[0]))
        build_files(clone(work / "clone", work / "second clone"), tools, work / "again")
        _raise_faults(fault for file in files if (fault := difference(file, work / "again" / file.name)))
    return files


def _raise_faults(faults: Iterable[str]) -> None:
    if sentences := "\n".join(faults):
        raise CommandFailed(sentences)


def _tried(files: list[Path], pythons: list[str]) -> Iterator[str]:
    """Install what suits this machine with each Python, and yield a line for each installation."""
    accepted = {tag.platform for tag in sys_tags()}
    for python in pythons:
        for wheel in files[:-1]:
            if platform_of(wheel) in accepted:
                yield f"{wheel.name}: {try_it(wheel, python, native=platform_of(wheel) != 'any')}"
    for has_compiler in True, False:
        line = try_it(files[-1], pythons[-1], native=has_compiler, build=has_compiler)
        yield f"{files[-1].name}, {'with' if has_compiler else 'without'} a compiler: {line}"


def _pythons() -> list[str]:
    """Return the path of each supported Python that starts, the oldest first."""
    paths = [path for minor in range(10, 15) if (path := shutil.which(f"python3.{minor}"))]
    return [path for path in paths if subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0]


if __name__ == "__main__":
    sys.exit(main())
