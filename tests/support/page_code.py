"""The code that a document shows."""

import re
from pathlib import Path

__all__ = ["DOCS", "code_in"]

DOCS = Path(__file__).parents[2] / "ortscan" / "docs"


def code_in(page: str, language: str, section: str = "") -> list[str]:
    """Return the blocks of code in ``language`` of a page, or of the section of the page that has the heading ``section``."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if section:
        _, _, rest = text.partition(f"\n## {section}\n")
        assert rest, f"{page} has no section {section!r}"
        text = rest.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
