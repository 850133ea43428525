import base64
import hashlib
import re

import numpy as np
import onnx
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.benchmark.result import Bench, BenchedModel, LoopTime, SizeResult, Timing
from ortscan.drawing.contents import picture_of
from ortscan.drawing.drawings import drawings_of
from ortscan.drawing.layers import lay_out
from ortscan.drawing.picture import Picture, count
from ortscan.drawing.svg import arrange, svg_of
from ortscan.modelio import load
from ortscan.report.answer import Answer
from ortscan.report.html import cards_of
from ortscan.report.outcome import Report
from ortscan.report.ratio import Speedup, ratio_of
from rewrites.base.report import LoopReport, RewriteReport
from tests.support.tags import tags_of
from tests.support.text import parsed

MAP = """<ir_version: 8, opset_import: ["" : 18]>
g (float[1, 2] s, float[7, 1, 2] x) => (float[1, 2] last, float[7, 1, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {
  last, y = Scan <num_scan_inputs = 1, body = body (float[1, 2] h, float[1, 2] e) => (float[1, 2] k, float[1, 2] o) {
    m = MatMul(e, w)
    t = Tanh(m)
    k = Max(h, t)
    o = Relu(t)
  }> (s, x)
}"""
OLD = """<ir_version: 7, opset_import: ["" : 8]>
g (float[2, 3] s, float[2, 4, 3] x) => (float[2, 3] last, float[2, 4, 3] y) {
  last, y = Scan <num_scan_inputs = 1, body = body (float[3] h, float[3] e) => (float[3] k, float[3] o) {
    k = Add(h, e)
    o = Identity(k)
  }> (, s, x)
}"""
HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "</svg></title><b>",
    "\u202eevil\u2066\x1b[31m\x00",
    "\u05d0\u05d1 &amp; ]]>",
    "long" * 25_000,
]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.onnx"
    onnx.save(parsed(MAP), path)
    return path


def renamed(proto: onnx.ModelProto, name: str) -> onnx.ModelProto:
    scan = next(node for node in proto.graph.node if node.op_type == "Scan")
    scan.name = name
    body = scan.attribute[0].g if scan.attribute[0].name == "body" else scan.attribute[1].g
    new = {"t": f"{name}t", "h": f"{name}h"}
    for node in body.node:
        for field in (node.input, node.output):
            field[:] = [new.get(each, each) for each in field]
        node.name = name
    for value in body.input:
        value.name = new.get(value.name, value.name)
    return proto


def written(tmp_path, *arguments: object) -> str:
    page = tmp_path / "page.html"
    assert main([*map(str, arguments), "--report", str(page)]) == 0
    return page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text_on_the_page(name):
    page = ortscan.explain(renamed(parsed(MAP), name)).to_html()
    seen = tags_of(page)
    assert seen["script"] == seen["main"] == 1
    assert seen["img"] == seen["b"] - 1 - page.count('<b class="') - page.count("<li>#") == 0
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", page)
    assert len(page) < 120_000


def test_a_hostile_name_on_the_command_line_is_text_too(tmp_path, model):
    odd = tmp_path / "<script>alert(1)<!script>.onnx"
    model.rename(odd)
    assert tags_of(written(tmp_path, "optimize", odd, "--dry-run", "--verify", "quick"))["script"] == 1


def test_a_browser_runs_no_script_but_the_one_of_the_page(model):
    page = ortscan.explain(model).to_html()
    script = re.search("<script>(.*)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_of_optimize_has_drawings_what_was_compared_and_how_it_was_made(tmp_path, model):
    page = written(tmp_path, "optimize", model, model, "--verify", "quick", "--max-unroll", "0")
    assert tags_of(page)["svg"] == 2
    for part in ("Before", "After", "Scan · 7 steps", "worst error", "max_unroll = 0", f"optimize {model}", "onnxruntime 1."):
        assert part in page


def test_the_pages_of_the_other_verbs_hold_what_they_found(tmp_path, model):
    old = tmp_path / "old.onnx"
    onnx.save(parsed(OLD), old)
    page = written(tmp_path, "migrate", old, "--dry-run", "--opset", "18", "--verify", "quick")
    assert tags_of(page)["svg"] == 2
    assert "1 opset-8 Scan lifted" in page
    assert "equal" in written(tmp_path, "verify", model, model)
    page = written(tmp_path, "bench", model, model, "--rounds", "1", "--seconds", "0.05")
    assert "peak memory" in page
    assert "m.onnx (2)" in page


@pytest.mark.parametrize("verb", [["verify", "{}", "{}"], ["bench", "{}"], ["migrate", "{}", "--dry-run"]])
def test_no_page_replaces_a_model(model, verb, capsys):
    assert main([*(word.format(model) for word in verb), "--report", str(model)]) == 2
    assert "would replace the model" in capsys.readouterr().err


def test_outcomes_have_a_summary_a_page_and_a_fragment(model):
    timing = Timing(2e-5, 1e-5, [2e-5] * 6, [1.0] * 6)
    fast = Timing(1e-5, 1e-5, [1e-5] * 6, [2.0] * 6)
    models = [BenchedModel("<a>", 10, 0.1, [0.1], None, [LoopTime("<l>", "Scan", 1e-5, 0.5)]), BenchedModel("b", 9, 0.1, [0.1])]
    bench = Bench(models, [SizeResult({"T": 3}, [timing, fast])], 1, 6, "1.2.3", ["<note>"])
    outcomes = [ortscan.explain(model), ortscan.verify(model, model, level="quick"), bench]
    for outcome in outcomes:
        assert "<" not in outcome.summary().replace("<note>", "").replace("<a>", "")
        assert tags_of(outcome.to_html())["main"] == 1
        assert tags_of(outcome._repr_html_())["main"] == tags_of(outcome._repr_html_())["script"] == 0
    assert "2.0 x faster" in bench.to_html()
    assert outcomes[0].summary().splitlines()[1].startswith("main/Scan producing 'last': Scan, 7 steps")


@pytest.mark.parametrize(
    ("fates", "card"),
    [
        (["removed", "removed"], ("2 of 2", "loops gone", "good")),
        (["compiled"], ("1 of 1", "loops compiled", "good")),
        (["removed", "compiled", "reduced"], ("2 of 3", "loops gone or compiled", "some")),
        (["kept"], ("0 of 1", "loops gone", "bad")),
    ],
)
def test_compiled_loops_count_as_solved(fates, card):
    report = RewriteReport([LoopReport(f"main/Scan '{fate}'", "Scan", 4, 1, 1, fate) for fate in fates])
    assert cards_of(report)[0] == card
    pages = Report.of(report).to_html()
    assert pages.count('badge good">') == sum(fate in ("removed", "compiled") for fate in fates)


@pytest.mark.parametrize(
    ("gains", "card"),
    [
        ([2.0] * 6, ("2.0 x faster", "measured, T=64", "good")),
        ([0.5] * 6, ("2.0 x slower", "measured, T=64", "bad")),
        ([1.0] * 6, ("no difference", "measured, T=64", "")),
    ],
)
def test_a_measured_gain_has_a_card(gains, card):
    speedup = Speedup(2e-3, 1e-3, ratio_of(gains), {"T": 64}, "T=64")
    report = RewriteReport([LoopReport("main/Scan 'a'", "Scan", 4, 1, 0, "removed")])
    answer = Answer.of(report, speedup=speedup)
    assert cards_of(report, answer) == [card, *cards_of(report)]
    assert f'<b class="{card[2]}">{card[0]}</b>' in Report.of(report, answer=answer).to_html()
    assert cards_of(report, Answer.of(report)) == cards_of(report)


def test_the_drawing_of_a_loop_marks_its_states_and_ties_its_ends_to_the_body():
    before = load(parsed(MAP)).model
    scan = before.graph[-1]
    picture = picture_of([scan], scan.outputs, 18)
    (loop,) = (node for node in picture.nodes if node.kind == "loop")
    body = loop.boxes[0].picture
    titles = [node.title for node in body.nodes]
    assert [(titles[end], titles[start]) for end, start in body.carried] == [("k", "h")]
    assert [node.kind for node in body.nodes if node.pin == "first"] == ["state", "step"]
    entering = {picture.nodes[edge.source].title: titles[edge.port] for edge in picture.edges if edge.port >= 0}
    assert entering == {"s": "h", "x": "e"}
    leaving = {picture.nodes[edge.target].title: titles[edge.exit] for edge in picture.edges if edge.exit >= 0}
    assert leaving == {"last": "k", "y": "o"}


def test_what_stands_in_the_place_of_a_loop_is_bounded_by_what_was_before_and_after_it():
    text = MAP.replace("(s, x)\n}", "(s, x0)\n}").replace("  last, y = Scan", "  x0 = Neg(x)\n  last, y = Scan")
    after = text[: text.index("  last, y")] + "  m = MatMul(x0, w)\n  t = Tanh(m)\n  y = Relu(t)\n  last = ReduceMax(t)\n}"
    drawn = drawings_of({"main/Scan producing 'last'": 7}, parsed(text), load(parsed(after)).model)["main/Scan producing 'last'"]
    assert sorted(node.title for node in drawn.after.nodes) == ["MatMul", "ReduceMax", "Relu", "Tanh", "last", "x0", "y"]
    assert (drawn.runs_before, drawn.runs_after) == (1 + 7 * 4, 4)


def test_a_body_too_large_to_be_seen_is_counted():
    nodes = "\n".join(f"    n{i} = Relu({'t' if i == 0 else f'n{i - 1}'})" for i in range(420))
    proto = parsed(MAP.replace("    o = Relu(t)", f"{nodes}\n    o = Relu(n419)"))
    report = ortscan.explain(proto, passes=[])
    assert "Relu: 421" in report.to_html()


def test_a_drawing_of_400_nodes_has_all_of_them_apart():
    generator = np.random.default_rng(0)
    edges = [(int(generator.integers(max(0, i - 20), i)), i) for i in range(1, 400) for _ in range(2)]
    laid = lay_out([60.0] * 400, edges, [], [])
    assert all(laid.layer[source] < laid.layer[target] for source, target in edges)
    rows: dict[int, list[float]] = {}
    for layer, centre in zip(laid.layer, laid.centre, strict=True):
        rows.setdefault(layer, []).append(centre)
    assert all(b - a >= 60 for row in rows.values() for a, b in zip(sorted(row), sorted(row)[1:], strict=False))


def test_an_empty_picture_is_drawn():
    assert count(Picture()) == 0
    assert svg_of(Picture(), "x")[0].startswith("<svg")
    assert arrange(Picture()).nodes == []
