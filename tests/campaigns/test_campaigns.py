"""Every campaign is listed in the document and starts by its name."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from tests.campaigns.__main__ import campaigns

FOLDER = Path(__file__).parent


def test_the_readme_lists_what_can_be_started():
    started = [file for file in FOLDER.rglob("*.py") if re.search(r"^if __name__ == ", file.read_text(encoding="utf-8"), re.M)]
    names = {".".join(file.relative_to(FOLDER).with_suffix("").parts).removesuffix(".__main__") for file in started}
    assert set(campaigns()) == names - {"__main__", "attacks.frame.server", "providers.child"}
    assert all(find_spec(f"tests.campaigns.{name}") for name in campaigns())


def test_the_entry_point_lists_and_starts_campaigns():
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.campaigns", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=FOLDER.parents[1],
        )

    assert run().stdout.count("\n") == len(campaigns())
    assert run("nothing").returncode == 1
    assert run("closed_forms", "no such family").stdout == "0 recurrences, 0 wrong\n"
