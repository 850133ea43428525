"""Profiles of onnxruntime show the names of the loops that the plugin runs, although its own nodes have numbers as names."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from tests.support.plugin_sessions import SCAN, asked_options, feeds_of_scan
from tests.support.text import model_from_text


def profiled(name: str, runs: int, folder: Path, threads: int = 1) -> list[dict[str, Any]]:
    """Return all events of the profile of ``runs`` runs of a model whose loop has this name."""
    model, feeds = model_from_text(SCAN, 18), feeds_of_scan()
    model.graph.node[0].name = name
    options = asked_options()
    options.enable_profiling, options.profile_file_prefix = True, str(folder / "profile")
    session = ort.InferenceSession(model.SerializeToString(), options)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: session.run(None, feeds), range(runs)))
    events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text())
    session.run(None, feeds)  # nobody profiles any more
    return events


def loops(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["cat"] == "Kernel"]


def test_a_loop_is_in_the_profile_by_its_name_once_a_run(tmp_path: Path) -> None:
    assert [event["name"] for event in loops(profiled("rnn/while", 3, tmp_path))] == ["Scan 'rnn/while'"] * 3


def test_a_run_of_the_loop_lies_within_the_run_of_its_node(tmp_path: Path) -> None:
    events = profiled("rnn/while", 2, tmp_path)
    for run in loops(events):
        node = run["args"]["node"]
        around = [event for event in events if event["cat"] == "Node" and event["name"].startswith(node)]
        assert any(abs(event["ts"] - run["ts"]) < 1000 and run["dur"] <= event["dur"] + 1000 for event in around)


@pytest.mark.parametrize("name", ['a "quoted" one', "back\\slash", "two\nlines"])
def test_no_name_of_a_loop_breaks_the_profile(name: str, tmp_path: Path) -> None:
    assert len(loops(profiled(name, 1, tmp_path))) == 1


def test_runs_of_several_threads_are_all_there(tmp_path: Path) -> None:
    assert len(loops(profiled("rnn", 400, tmp_path, threads=4))) == 400


def test_two_sessions_profile_each_for_itself(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    assert len(loops(profiled("one", 2, first))) == 2
    assert {event["name"] for event in loops(profiled("other", 3, second))} == {"Scan 'other'"}
