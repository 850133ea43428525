import ast
import html
import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import rewrites
from ortscan.report import text
from ortscan.report.answer import Answer
from ortscan.report.codes import CODES, lookup, meaning, similar
from ortscan.report.outcome import Report as Shown
from ortscan.report.words import dump, headline, report_dict, size
from rewrites.base.plain_text import one_line, plain
from rewrites.base.report import Fired, LoopReport, NodeReport, Reason, RewriteReport
from tests.support.tags import tags_of

ODD = "main/Scan '[bold]ä/循环[/nope] <b>&amp;\x1b[31m\u202e'"
CODE = next(iter(CODES))


def report() -> RewriteReport:
    hoist = Fired(1, "hoist", ODD, "moved 2 nodes out")
    loops = [
        LoopReport("main/Scan 'gone'", "Scan", 64, 10, 0, "removed", [Fired(2, "lstm", "main/Scan 'gone'", "became LSTM")]),
        LoopReport(
            ODD,
            "Scan-8",
            "sequence_length",
            9,
            4,
            "reduced",
            [hoist],
            [Reason("map", "NOT-IN-THE-TABLE", "because " * 40), Reason("rnn", CODE, "h")],
            ["took [T] as 64"],
        ),
        LoopReport("main/Loop 'l'/body/Loop 'm'", "Loop", None, 3, 3, "kept", [], [Reason("map", CODE, "x is needed")]),
    ]
    before, after = Counter(Scan=2, Loop=2, Add=5, MatMul=1), Counter(Scan=1, Loop=2, Add=5, MatMul=1, LSTM=1)
    return RewriteReport(loops, [hoist, *loops[0].fired], before, after, ["function f was inlined"], "cpu", 18)


def shown(renderable: object, width: int = 80, **options: object) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False, **options)  # type: ignore[arg-type]
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


def squeezed(content: str) -> str:
    return re.sub(r"\s", "", content)


def page(given: RewriteReport, title: str = "m.onnx") -> str:
    return Shown.of(given, model=title).to_html()


def explained(report: RewriteReport) -> object:
    return text.explanation(report, Answer.of(report))


RENDERERS = [text.operator_table, text.loop_table, text.patch_list, explained]


@pytest.mark.parametrize("render", RENDERERS)
def test_text_fits_80_columns_and_holds_no_control_codes(render):
    lines = shown(render(report())).splitlines()
    assert lines
    assert all(line.isprintable() and len(line) <= 80 for line in lines)


def test_names_that_look_like_markup_are_shown_as_they_are():
    for render in (text.loop_table, explained):
        assert "[bold]ä/循环[/nope]<b>&amp;\\x1b[31m\\u202e'" in squeezed(shown(render(report()), width=200))


def test_the_operator_table_shows_what_changed_and_the_total():
    lines = [line.split() for line in shown(text.operator_table(report())).splitlines()]
    assert ["Scan", "2", "1"] in lines
    assert ["LSTM", "0", "1"] in lines
    assert ["all", "nodes", "10", "10"] in lines
    assert not any("Add" in line for line in lines)


def test_the_loop_table_shows_loops_that_are_left_first():
    lines = shown(text.loop_table(report()), width=160).splitlines()
    fates = [fate for line in lines for fate in ("removed", "reduced", "kept") if f" {fate} " in f"{line} "]
    assert fates == ["reduced", "kept", "removed"]
    assert "NOT-IN-THE-TABLE" in lines[2]
    assert "9 -> 4" in lines[2]
    assert " ? " in lines[3]


def test_of_many_loops_only_the_first_are_listed_unless_asked():
    many = RewriteReport([LoopReport(f"main/Scan 's{i}'", "Scan", 4, 1) for i in range(50)])
    assert "... and 30 more" in shown(text.loop_table(many))
    assert len(shown(text.loop_table(many, every=True)).splitlines()) == 52


def test_the_explanation_has_every_reason_with_its_detail_and_note():
    content = squeezed(shown(explained(report())))
    for part in ("#2 lstm: became LSTM", f"{CODE} (rnn) {meaning(CODE)}", "x is needed", "took [T] as 64", "because " * 40):
        assert squeezed(part) in content
    assert squeezed("function f was inlined") in content


def test_an_unknown_code_is_shown_as_it_is():
    assert "NOT-IN-THE-TABLE (map)" in shown(explained(report()))
    assert "NOT-IN-THE-TABLE" in page(report(), "m.onnx")


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        ([], "The model has no Scan or Loop."),
        (["kept"], "1 loop: 1 kept."),
        (["removed", "kept", "removed"], "3 loops: 2 removed, 1 kept."),
    ],
)
def test_the_headline_counts_fates(fates, said):
    assert headline(RewriteReport([LoopReport("main/Scan", "Scan", 1, 1, fate=fate) for fate in fates])) == said


def test_a_report_of_plain_data_has_an_answer():
    assert Shown.from_dict(report().to_dict()).summary().startswith("1 of 3 loops gone\n")


def test_an_empty_report_renders_everywhere():
    for render in RENDERERS:
        shown(render(RewriteReport()))
    assert "<p>None.</p>" in page(RewriteReport(), "m.onnx")
    assert json.loads(dump(report_dict(RewriteReport())))["changed"] is False


def test_json_holds_the_whole_report():
    read = json.loads(dump(report_dict(report())))
    assert read["operators_before"] == {"Scan": 2, "Loop": 2, "Add": 5, "MatMul": 1}
    assert read["loops"][1]["where"] == ODD
    assert read["loops"][1]["reasons"][1] == {"rule": "rnn", "code": CODE, "detail": "h", "is_a": ""}
    assert read["patches"][0] == {
        **{"number": 1, "rule": "hoist", "loop": ODD, "what": "moved 2 nodes out"},
        "made": {"native": "", "on_cpu": False, "under_if": False, "unrolled": 0, "instructions": 0, "is_a": ""},
    }
    assert read["changed"] is True


def test_json_stays_standard_with_infinities_and_numpy_values():
    values = {"a": float("inf"), "b": np.float32("nan"), "c": np.arange(2), "d": (np.int64(3),), "e": b"x", "f": "\udc80"}
    assert json.loads(dump(values)) == {"a": "inf", "b": "nan", "c": [0, 1], "d": [3], "e": "b'x'", "f": "\udc80"}


def test_the_page_is_well_formed_and_needs_nothing_else():
    seen = tags_of(page(report(), "<m>.onnx"))
    assert seen["details"] == 3
    assert seen["script"] == 1
    assert seen["m"] == seen["link"] == 0


def test_the_page_escapes_names_and_explains_codes():
    content = page(report(), "<m>.onnx")
    assert "&lt;m&gt;.onnx" in content
    assert "&lt;b&gt;&amp;amp;\\x1b[31m" in content
    assert CODES[CODE].text.split(". ")[0].split("'")[0].split('"')[0] in content


def test_codes_are_found_in_any_case_and_by_similar_spelling():
    assert lookup(CODE.lower()) is CODES[CODE]
    assert lookup("NOT-IN-THE-TABLE") is None
    assert meaning("NOT-IN-THE-TABLE") == ""
    assert CODE in similar(CODE[:-1])


def test_every_code_has_a_short_line_and_a_text():
    for code, entry in CODES.items():
        assert re.fullmatch(r"[A-Z0-9]+(-[A-Z0-9]+)*", code)
        assert entry.meaning.endswith(".")
        assert len(entry.meaning) <= 100
        assert entry.text.endswith(".")


def test_every_reason_that_a_rule_gives_is_explained():
    assert {"RECURRENCE", "NO-BATCHING-RULE"} <= given_codes() <= set(CODES)


def given_codes() -> set[str]:
    """The codes that rules name where they refuse; not those of reasons that reports leave out."""
    results = set()
    for file in Path(rewrites.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            called = ast.unparse(node.func).rpartition(".")[2]
            silent = len(node.args) > 2 or any(word.arg == "silent" for word in node.keywords)
            if called in ("NotApplicable", "refuse") and not silent:
                results.add(node.args[0].value)
    return results


def test_plain_escapes_what_a_terminal_would_obey():
    assert plain("a\x1b[2J\tb\n\udc80é") == "a\\x1b[2J\\tb\\n\\udc80é"
    assert one_line("a\n  b\x07") == "a b\\x07"


@pytest.mark.parametrize(("count", "said"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 40, "5120.0 GiB")])
def test_sizes_read_well(count, said):
    assert size(count) == said


def test_pairs_of_directions_are_shown_with_what_became_of_them():
    joined = NodeReport("main/GRU 'there'", "GRU", [Fired(3, "both-directions", "main/GRU 'there'", "made one of two")])
    kept = NodeReport("main/LSTM 'back'", "LSTM", reasons=[Reason("both-directions", "COST-BIDIRECTIONAL", "two are faster")])
    one = RewriteReport(pairs=[joined, kept])
    for part in ("main/GRU 'there'", "made one of two", "main/LSTM 'back'", "COST-BIDIRECTIONAL", "two are faster"):
        assert part in shown(explained(one), width=200)
        assert part in html.unescape(page(one, "a model"))
    assert [each["where"] for each in report_dict(one)["pairs"]] == [joined.where, kept.where]
