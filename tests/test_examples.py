import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import ortscan

EXAMPLES = Path(__file__).parents[1] / "examples"
SAYS = {
    "jax_scan": ["LSTM, forward, H=7", "fixed sizes"],
    "keras_layer": ["GRU, forward, H=7", "GRU, backward, H=7", "0 after: removed", "=64"],
    "migrate_an_old_model": [
        "before: opset 8, loops: 1",
        "migrated: opset 18, loops: 1",
        "optimized: opset 18, loops: 0",
        "times as fast",
    ],
    "optimize_a_model": ["operators: MatMul, Relu\n", "equal", "fixed sizes"],
    "serve_a_model": ["first start: optimized", "second start: cached", "its loop compiled", "optimised first"],
    "streaming": ["the step alone: removed the loop, ", "100 frames of 10 ms", "ortscan: "],
    "tutorial": [
        "Loop, 30 nodes a step: removed, GRU, forward, H=7\n",
        "Loop, 30 nodes a step: removed, GRU, backward, H=7\nbuilt: 14 nodes, equal\n",
        "2 of 2 loops gone · equal on ",
        "session: optimized",
        "session: cached",
    ],
    "torch_loop": ["left RECURRENCE", "did  hoist-invariants", "times as fast"],
    "without_loops": ["1 Loop", "unrolled into 12 nodes, on coreml", "3 Tanh", "equal", "on the CPU"],
}
"""What each example says, among other things."""


def test_each_example_is_tried():
    assert [path.stem for path in sorted(EXAMPLES.glob("*.py"))] == sorted(SAYS)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long) if name == "tutorial" else name for name in SAYS])
def test_an_example_says_what_it_gained(name, capsys):
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert [part for part in SAYS[name] if part not in said] == []


def test_a_stream_hears_what_all_frames_at_once_give(capsys):
    runpy.run_path(str(EXAMPLES / "streaming.py"), run_name="__main__")
    (said,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("100 frames"))
    least, most, difference, of_state = (float(part.split()[-1]) for part in said.replace(" to ", ", ").split(", "))
    assert most - least > 0.1
    assert max(difference, of_state) < 1e-5


def test_no_loop_is_left_in_the_example_for_a_provider_without_loops(capsys):
    runpy.run_path(str(EXAMPLES / "without_loops.py"), run_name="__main__")
    before, after = capsys.readouterr().out.split("after:")
    assert "Loop" in before
    assert "Loop" not in after
    assert "Scan" not in after


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ortscan.OrtscanWarning")  # on a busy machine there may be no time to compare
def test_the_readme_runs_as_it_stands(tmp_path, monkeypatch):
    root = EXAMPLES.parent
    (tmp_path / "examples").symlink_to(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORTSCAN_CACHE_DIR", str(tmp_path / "cache"))
    (shown,) = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(shown, names)
    assert [node.op_type for node in names["smaller"].graph.node if node.op_type in ("Loop", "Scan")] == []
    assert (tmp_path / "out.onnx").is_file()


def test_the_page_on_reports_shows_the_reasons_of_its_example():
    page = (EXAMPLES.parent / "ortscan" / "docs" / "start" / "report.md").read_text(encoding="utf-8")
    (loop,) = ortscan.explain(EXAMPLES / "torch_attention_decoder.onnx").loops
    assert [f"{reason.code} ({reason.rule})" for reason in loop.reasons if f"{reason.code} ({reason.rule})" not in page] == []
    assert [reason.detail for reason in loop.reasons if reason.detail not in page] == []
