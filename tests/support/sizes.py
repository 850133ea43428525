"""Print the lines and files of each room, and how they changed: ``python -m tests.support.sizes [REVISION]``.

A room is a folder of a package. The default revision is the last tag, or 100 commits ago if there is no tag.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

__all__ = ["main", "sizes"]

_SOURCES = [
    f"{package}/*.{suffix}" for package in ("rewrites", "ortscan", "tests", "examples") for suffix in ("py", "c", "h", "inc")
]


def main(revision: str = "") -> None:
    since = revision or _git("describe", "--tags", "--abbrev=0") or _git("rev-list", "--max-count=101", "HEAD").split()[-1]
    lines, files = sizes()
    lines_before, files_before = sizes(since)
    print(f"{'':30}{'lines':>8}{'change':>8}{'files':>7}{'change':>8}   since {since[:12]}")
    for room in sorted(lines | lines_before):
        changes = f"{lines[room] - lines_before[room]:>+8}{files[room]:>7}{files[room] - files_before[room]:>+8}"
        print(f"{room:30}{lines[room]:>8}{changes}")


def sizes(revision: str = "") -> tuple[Counter[str], Counter[str]]:
    """Return the lines and the files of each room and package, in a revision or in the working tree."""
    lines, files = Counter[str](), Counter[str]()
    for counted in _git("grep", "--count", "", *([revision] if revision else []), "--", *_SOURCES).splitlines():
        path, _, count = counted.removeprefix(f"{revision}:").rpartition(":")
        package, *folders, _ = Path(path).parts
        for room in {package, "/".join([package, *folders[:1]])}:
            lines[room] += int(count)
            files[room] += 1
    return lines, files


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    main(*sys.argv[1:])
