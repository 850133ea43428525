"""Documents lead to files that are there, and stay as short as they are meant to be."""

import ast
import re
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from rewrites.cleanup import dead_code
from tests.rewrites.harness import becomes, scan, stays
from tests.test_floors import FLOORS, MODULES, tree_of

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(file for folder in ("ortscan", "rewrites", "tests") for file in sorted((ROOT / folder).rglob("*.md"))),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_to_a_file(document):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
    assert [link for link in links if not (document.parent / link).is_file()] == []


@pytest.mark.parametrize(("document", "most"), [("README.md", 110), ("CONTRIBUTING.md", 130), ("rewrites/README.md", 100)])
def test_what_is_read_first_stays_short(document, most):
    assert len((ROOT / document).read_text(encoding="utf-8").splitlines()) <= most


def test_the_map_names_every_floor_and_room():
    text = (ROOT / "rewrites" / "README.md").read_text(encoding="utf-8")
    floors = [floor for package in FLOORS.values() for floor in package]
    rooms = [file.parent for file in (ROOT / "rewrites").rglob("__init__.py")]
    rooms = [
        room.name
        for room in rooms
        if room.parent.parent == ROOT / "rewrites" and room.parent.name in ("analysis", "recurrences", "ops")
    ]
    assert [floor for floor in floors if f"`{floor}`" not in text] == []
    assert [room for room in rooms if f"`{room}/`" not in text] == []


def test_the_files_that_the_map_names_are_there():
    text = (ROOT / "rewrites" / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:rewrites/|ortscan/|tests/)?(?:[a-z0-9_]+/)*[a-z0-9_]+\.(?:py|md))[`:]", text))
    files = [str(file.relative_to(ROOT)) for folder in ("ortscan", "rewrites", "tests") for file in (ROOT / folder).rglob("*.*")]
    assert len(named) > 20
    assert [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in [*files, "README.md"])] == []


def test_the_rule_of_the_worked_example_passes_its_tests():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rule, its_tests = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    module = ModuleType("double_negations")
    exec(rule, vars(module))
    names = {"double_negations": module, "dead_code": dead_code, "becomes": becomes, "pytest": pytest, "scan": scan, "stays": stays}
    exec(its_tests, names)
    tests = [one for name, one in names.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        for marked in getattr(test, "pytestmark", [None]):
            for given in marked.args[1] if marked is not None else [None]:
                test() if given is None else test(given)


def test_docstrings_say_what_functions_return_as_the_field_does():
    """Return, not Give; PEP 257 has it so too."""
    functions = [
        (name, node) for name, file in MODULES.items() for node in ast.walk(tree_of(file)) if isinstance(node, ast.FunctionDef)
    ]
    returning = [(name, one) for name, one in functions if one.returns is not None and ast.unparse(one.returns) != "None"]
    assert len(returning) > 1000
    assert [(name, one.name) for name, one in returning if (ast.get_docstring(one) or "").startswith("Give ")] == []


def test_the_types_of_what_the_readme_shows_are_checked() -> None:
    """mypy reads ``typed_use.py``, which holds the README's lines as they are."""
    shown = re.search(r"```python\nimport ortscan\n\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert textwrap.indent(shown[1], "    ") in (ROOT / "tests" / "typed_use.py").read_text(encoding="utf-8")
