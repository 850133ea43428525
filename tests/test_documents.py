"""Documents lead to files that are there, and stay as short as they are meant to be."""

import ast
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import ortscan
from ortscan import errors
from ortscan.cli.command import build_parser
from ortscan.cli.invocation import ExitCode
from ortscan.native.backend import _DESCRIPTION, description_of
from ortscan.report.codes import CODES
from ortscan.session import settings
from ortscan.verb_options import OPTIMIZE_OPTIONS
from rewrites.base.report import Fate
from rewrites.cleanup import dead_code
from tests.rewrites.harness import becomes, scan, stays
from tests.support.command_line import options_of_verbs
from tests.test_floors import FLOORS, MODULES, tree_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "ortscan" / "docs"
DESIGN = "rewrites/README.md"
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(file for folder in ("ortscan", "rewrites", "tests") for file in sorted((ROOT / folder).rglob("*.md"))),
]

SAID_IN_ENTRIES = {
    "declare the shapes": "[Dd]eclar",
    "migrate": "igrate the model",
    "Cast": "A Cast|a Cast|[Cc]ast(ing)? the values",
    "nothing": "Nothing needs to be done",
    "report it": "please report it",
}
"""What each entry of a code says, by a part of the remedy in the table of troubleshooting."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(document):
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", document.read_text(encoding="utf-8"))
    files = [(document.parent / link if link else document, anchor) for link, anchor in links]
    assert [str(file) for file, _ in files if not file.is_file()] == []
    assert [(str(file), anchor) for file, anchor in files if anchor and anchor not in anchors_of(file)] == []


def anchors_of(document: Path) -> set[str]:
    """Return the anchors of the headings, as MkDocs and GitHub make them of plain ones."""
    headings = re.findall(r"^#+ (.*)$", without_code(document.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def without_code(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_sentence_is_longer_than_35_words(document):
    assert [sentence for sentence in sentences(document.read_text(encoding="utf-8")) if len(words(sentence)) > 35] == []


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of paragraphs and of items of lists."""
    lines = [line.strip() for line in without_code(text).splitlines()]
    starts = re.compile(r"$|[#|<]|:::|(?:[*-]|\d+\.) ")
    paragraphs = "\n".join(f"\n{line}" if starts.match(line) else line for line in lines).split("\n\n")
    for paragraph in paragraphs:
        if not re.match(r"[#|<]|:::", paragraph.strip()):
            yield from re.split(r"(?<=[.!?])[)\"*]*\s+", paragraph.strip().replace("\n", " "))


def words(sentence: str) -> list[str]:
    """Return the words that count: names in code do not, nor does a list of names."""
    listed = all(" " not in item for item in sentence.split(", "))
    return [] if listed else re.findall(r"\S*\w\S*", re.sub(r"`[^`]*`", "", sentence))


def test_long_sentences_are_found():
    long = " ".join(["word"] * 36)
    text = f"# {long}\n\nShort. {long}\nmore.\n* {long}\n\n```\n{long}\n```\n| {long} |\n"
    assert [len(words(sentence)) for sentence in sentences(text) if len(words(sentence)) > 35] == [37, 36]


def test_no_summary_of_a_docstring_is_longer_than_100_characters():
    """The summary is the first line of a docstring."""
    described = (ast.Module, ast.FunctionDef, ast.ClassDef)
    trees = [tree_of(file) for name, file in MODULES.items() if name.partition(".")[0] in ("ortscan", "rewrites")]
    nodes = [node for tree in trees for node in ast.walk(tree) if isinstance(node, described)]
    summaries = [(ast.get_docstring(node) or "").partition("\n")[0] for node in nodes]
    assert [summary for summary in summaries if len(summary) > 100] == []


@pytest.mark.parametrize(("document", "most"), [("README.md", 100), ("CONTRIBUTING.md", 130), (DESIGN, 100)])
def test_what_is_read_first_stays_short(document, most):
    assert len((ROOT / document).read_text(encoding="utf-8").splitlines()) <= most


def test_what_a_package_index_shows_has_no_link_to_a_file():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'readme = {{ file = "{_DESCRIPTION.as_posix()}"' in project
    text = description_of((ROOT / "README.md").read_text(encoding="utf-8"))
    assert re.findall(r"!\[|\]\((?!https?://)|<img|<a ", text) == []
    assert "your first model in five minutes" in text


def test_the_site_lists_every_page():
    listed = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))


def test_every_public_name_has_an_entry():
    text = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
    assert [name for name in ortscan.__all__ if f"::: ortscan.{name}\n" not in text and f"`ortscan.{name}`" not in text] == []
    named = [getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert [
        error.__name__ for error in named if f"`{error.__name__}`" not in text and f"ortscan.{error.__name__}\n" not in text
    ] == []


def test_every_option_session_entry_fate_and_exit_code_is_documented():
    reference = {page.stem: page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md")}
    assert [name for name in options_of_verbs() if not re.search(rf"{name}[` <,]", reference["command-line"])] == []
    assert [name for name in OPTIMIZE_OPTIONS if f"`{name}=" not in reference["options"]] == []
    assert [name for name in settings.KNOWN if f"`ortscan.{name}`" not in reference["session-entries"]] == []
    assert [fate for fate in get_args(Fate) if f"| `{fate}` |" not in reference["fates"]] == []
    assert [int(code) for code in ExitCode if f"| {int(code)} |" not in reference["exit-codes"]] == []


def test_troubleshooting_agrees_with_the_reason_codes():
    """An option in a row is in the entry of at least one code of the row, and each code has one of the options of its row."""
    table = (DOCS / "troubleshooting.md").read_text(encoding="utf-8").partition("| code |")[2].partition("\n\n")[0]
    rows = [row.strip("| ").split(" | ") for row in table.splitlines() if row.startswith("| [")]
    codes = [code for named, _ in rows for code in re.findall(r"`([A-Z0-9-]+)`", named)]
    assert len(codes) == len(set(codes)) > 50
    assert set(codes) - CODES.keys() == set()
    for named, remedy in rows:
        texts = {code: CODES[code].text for code in re.findall(r"`([A-Z0-9-]+)`", named)}
        options = set(re.findall(r"--[a-z-]+", remedy))
        assert [option for option in options if "opset" not in option and not any(option in text for text in texts.values())] == []
        wanted = next((words for part, words in SAID_IN_ENTRIES.items() if part in remedy), "|".join(options))
        assert [code for code, text in texts.items() if not re.search(wanted, text)] == [], remedy
    done = {code for code, entry in CODES.items() if "Nothing needs to be done" in entry.text}
    assert done == {code for named, remedy in rows if "nothing" in remedy for code in re.findall(r"`([A-Z0-9-]+)`", named)}


def test_the_commands_in_documents_are_understood():
    parser = build_parser()
    blocks = [
        block
        for page in DOCS.rglob("*.md")
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.M)
    ]
    commands = [line for block in blocks for line in block.splitlines() if re.match(r"ortscan [^V]", line)]
    assert len(commands) > 20
    for command in commands:
        if "--version" not in command:
            assert parser.parse_args(shlex.split(command, comments=True)[1:]).run is not None


def test_the_tutorial_shows_its_script():
    script = (ROOT / "examples" / "tutorial.py").read_text(encoding="utf-8")
    assert f"```python\n{script}```" in (DOCS / "start" / "first-model.md").read_text(encoding="utf-8")


def test_the_map_names_every_floor_and_room():
    text = (ROOT / DESIGN).read_text(encoding="utf-8")
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
    text = (ROOT / DESIGN).read_text(encoding="utf-8")
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
