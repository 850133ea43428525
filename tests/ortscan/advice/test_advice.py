"""Advice of explain: every candidate is tried, and the text uses the flags of the command line."""

import io
import json
import shlex

import onnx
import pytest
from rich.console import Console

import ortscan
from ortscan.__main__ import main
from ortscan.advice import giving
from ortscan.advice.candidates import candidates
from ortscan.benchmark import brief
from ortscan.benchmark.result import Bench, SizeResult, Timing
from ortscan.report.terminal import Entries, wrapped
from ortscan.running.specs import input_specs
from rewrites.base.errors import OptionError
from rewrites.base.report import LoopReport, Reason, RewriteReport
from tests.support.small_models import ENDLESS
from tests.support.text import parsed

CELL = """<ir_version: 9, opset_import: ["" : 18]>
g (float[B, 4] h0, float[T, B, 3] x) => (float[T, B, 4] ys)
<float[3, 4] W = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2},
 float[4, 4] R = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6}>
{
  last, ys = Scan <num_scan_inputs = 1, body = b (float[B, 4] h, float[B, 3] xt) => (float[B, 4] next, float[B, 4] y) {
    a = MatMul(xt, W)
    b = MatMul(h, R)
    s = Add(a, b)
    next = Tanh(s)
    y = Identity(next)
  }> (h0, x)
}"""
DECAY = """<ir_version: 9, opset_import: ["" : 18]>
g (float[T, 4] a, float[T, 4] b, float[4] h0) => (float[T, 4] ys)
{
  last, ys = Scan <num_scan_inputs = 2, body = b (float[4] h, float[4] at, float[4] bt) => (float[4] next, float[4] y) {
    m = Mul(at, h)
    next = Add(m, bt)
    y = Identity(next)
  }> (h0, a, b)
}"""


def test_a_loop_that_does_not_end_is_not_timed(monkeypatch):
    monkeypatch.setattr(brief, "_LONGEST_RUN", {"full": 0.5})
    report = ortscan.explain(parsed(ENDLESS), advice=True)
    assert [loop.fate for loop in report.loops_left]
    assert not any(loop.advice for loop in report.loops)
    (message,) = report.messages
    assert message.startswith("no advice: ")
    assert "a loop may not end on generated inputs" in message


def as_fast(factor: float) -> Bench:
    timings = [Timing(seconds, seconds, [seconds] * 9, [1e-5 * factor / seconds] * 9) for seconds in (1e-5 * factor, 1e-5)]
    return Bench([], [SizeResult({"B": 2}, timings)], 1, 9, "")


@pytest.fixture
def untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report every changed fate as twice as fast, without measuring."""
    monkeypatch.setattr(giving, "gain_of", lambda one, without: as_fast(2.0))
    monkeypatch.setattr(brief, "time_result", lambda *models, **options: None)
    monkeypatch.setattr("ortscan.advice.trying.TriedCandidate._is_equal", lambda one, level: True)


@pytest.mark.usefixtures("untimed")
def test_size_that_makes_a_cell_native_is_proposed() -> None:
    (loop,) = ortscan.explain(parsed(CELL), advice=True, native=False).loops
    first = loop.advice[0]
    assert (first.flags, first.options, first.fate) == ("--dim B=2", {"dims": {"B": 2}}, "removed")
    assert first.text == "dims={'B': 2}: no loop is left; 2.0 x faster (10.0 µs instead of 20.0 µs, B=2), if B is mostly 2 or less"
    assert loop.is_a == "RNN, forward, H=4"
    result = ortscan.optimize(parsed(CELL), verify=False, **first.options)
    assert 'op_type: "Scan"' not in str(result)


@pytest.mark.usefixtures("untimed")
def test_candidate_that_is_not_faster_is_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving, "gain_of", lambda one, without: None)
    assert [loop.advice for loop in ortscan.explain(parsed(CELL), advice=True).loops] == [[]]


@pytest.mark.usefixtures("untimed")
def test_candidate_with_other_results_is_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortscan.advice.trying.TriedCandidate._is_equal", lambda one, level: False)
    assert [loop.advice for loop in ortscan.explain(parsed(CELL), advice=True).loops] == [[]]


@pytest.mark.usefixtures("untimed")
def test_candidate_that_passes_only_quick_verification_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortscan.advice.trying.TriedCandidate._is_equal", lambda one, level: level == "quick")
    (loop,) = ortscan.explain(parsed(CELL), advice=True).loops
    assert loop.advice[0].flags == "--dim B=2 --verify quick"


def test_removed_loop_counts_on_a_target_without_loops() -> None:
    (loop,) = ortscan.explain(parsed(DECAY), target="qnn", advice=True).loops
    assert [advice.flags for advice in loop.advice] == ["--fix-dim T=16"]
    assert loop.advice[0].seconds is None
    assert loop.advice[0].text == "fix_dims={'T': 16}: no loop is left, if T is always 16, or another number"


def test_explain_gives_no_advice_by_default() -> None:
    assert [loop.advice for loop in ortscan.explain(parsed(CELL)).loops] == [[]]
    with pytest.raises(OptionError, match="advice must be True or False"):
        ortscan.explain(parsed(CELL), advice="yes")
    with pytest.raises(OptionError, match="no option 'fast_maths', perhaps 'fast_math' was meant"):
        ortscan.explain(parsed(CELL), fast_maths=True)


@pytest.mark.usefixtures("untimed")
def test_command_line_prints_advice_with_working_flags(tmp_path, capsys) -> None:
    path, out = tmp_path / "m.onnx", tmp_path / "o.onnx"
    onnx.save(parsed(CELL), path)
    assert main(["explain", str(path)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith("is   RNN, forward, H=4") for line in lines)
    assert any(line.startswith("try  --dim B=2: no loop is left") for line in lines)
    assert main(["explain", str(path), "--json"]) == 0
    (loop,) = json.loads(capsys.readouterr().out)["report"]["loops"]
    flags = shlex.split(loop["advice"][0]["flags"])
    assert main(["optimize", str(path), str(out), "--no-verify", "--json", *flags]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["loops"][0]["fate"] == loop["advice"][0]["fate"]
    assert main(["explain", str(path), "--no-advice"]) == 0
    assert "try " not in capsys.readouterr().out


def test_reports_with_advice_round_trip_as_plain_data() -> None:
    report = ortscan.explain(parsed(DECAY), target="qnn", advice=True)
    assert RewriteReport.from_dict(json.loads(json.dumps(report.to_dict()))).loops[0].advice[0].flags == "--fix-dim T=16"


def flags_for(reasons: list[str], steps: int | str | None = None, target: str = "cpu", **options: object) -> list[str]:
    loop = LoopReport("main/Scan", "Scan", steps, 3, 3, reasons=[Reason("r", code, "") for code in reasons])
    model = parsed("""<ir_version: 9, opset_import: ["" : 18]>
        g (float[B, 4] h0, float[N] x, int64 n) => (float y) { y = ReduceSum(x) }""")
    defaults: list[str] = options.pop("defaults", [])  # type: ignore[assignment]
    return [each.flags for each in candidates(RewriteReport([loop], target=target), options, input_specs(model.graph), defaults)]


def test_candidates_follow_from_reasons_and_unused_options() -> None:
    assert "--max-unroll 6" in flags_for(["COST-UNROLL"], 6)
    assert "--max-unroll 6" not in flags_for(["COST-UNROLL"], 6, max_unroll=8)
    assert "--fast-math" not in flags_for(["RECURRENCE"], 6, fast_math=True)
    assert "--memory-budget 1G" in flags_for(["MEMORY-BUDGET"], "T")
    assert not any(flag.startswith("--memory") for flag in flags_for(["RECURRENCE"], "T"))
    assert "--dim B=2" in flags_for(["COST-NATIVE"], 6)
    assert "--dim B=2" not in flags_for(["COST-NATIVE"], 6, dims={"B": 8})
    assert "--fix-input n=8" in flags_for(["RECURRENCE"], None)
    assert "--fix-input n=8" not in flags_for(["RECURRENCE"], 6)
    assert "--opset auto" in flags_for(["RECURRENCE"], 6, opset="keep")
    assert "--freeze all" in flags_for(["DEFAULT-INPUT"], 6, defaults=["W"])
    assert "--native" not in flags_for(["RECURRENCE"], 6, native=True)
    assert "--native" not in flags_for(["RECURRENCE"], 6, target="qnn")


def test_lines_break_between_words_but_not_inside_quotes() -> None:
    name = "'a/very long/name with spaces'"
    assert list(wrapped(f"reads {name}, once", 12)) == ["reads", f"{name},", "once"]
    assert list(wrapped("", 12)) == [""]
    wide = Console(file=io.StringIO(), width=1 << 14)
    wide.print(Entries([("why", "word " * 200)], 2))
    assert len(wide.file.getvalue().splitlines()) == 1  # type: ignore[attr-defined]
