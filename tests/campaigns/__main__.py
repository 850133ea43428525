"""Start a campaign: ``python -m tests.campaigns NAME [ARGUMENT ...]``; without a name, list all campaigns."""

import re
import runpy
import sys
from pathlib import Path

__all__ = ["campaigns", "main"]

_DOCUMENT = Path(__file__).parents[2] / "ortscan" / "docs" / "maintainers" / "campaigns.md"


def campaigns() -> dict[str, str]:
    """Return what each campaign does, by name: the rows of the tables in its document."""
    return dict(re.findall(r"^\| `([\w.]+)` \| (.+?) \|", _DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE))


def main() -> None:
    known, name = campaigns(), "".join(sys.argv[1:2])
    if name not in known:
        width = max(map(len, known))
        print(*(f"{each:{width}}  {line}" for each, line in known.items()), sep="\n")
        sys.exit(f"There is no campaign {name}." if name else 0)
    del sys.argv[1]
    runpy.run_module(f"{__package__}.{name}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
