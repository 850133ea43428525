"""Documents lead to files that are there, and stay as short as they are meant to be."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [file for folder in ("ortscan", "rewrites", "tests") for file in sorted((ROOT / folder).rglob("*.md"))] + [
    ROOT / "README.md"
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_to_a_file(document):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).is_file()] == []


@pytest.mark.parametrize(("document", "most"), [("README.md", 110)])
def test_what_is_read_first_stays_short(document, most):
    assert len((ROOT / document).read_text(encoding="utf-8").splitlines()) <= most
