"""Benchmarks of small models from end to end; speeds are never asserted."""

import json
import sys
from contextlib import ExitStack
from functools import partial

import numpy as np
import onnx
import onnx.parser
import pytest

import ortscan
from ortscan.__main__ import main
from ortscan.benchmark import measure
from ortscan.benchmark.bench_inputs import dims_of_steps
from ortscan.benchmark.measure import names_for
from ortscan.benchmark.timed_session import TimedSession, times_of_loops
from ortscan.modelio.source import open_source
from ortscan.running.specs import input_specs
from tests.support.small_models import ENDLESS, MAP, PLAIN, RECURRENCE
from tests.support.text import parsed

COMPILED = RECURRENCE.replace("Atan", "Sin")
LITTLE = {"rounds": 2, "seconds": 0.02}
LOOP = """
<ir_version: 8, opset_import: ["": 18]>
g (float[B, T, 4] x) => (float[B, 4] y) <int64 one = {1}, float[1] zero = {0}> {
  shape = Shape (x)
  count = Gather (shape, one)
  first = Shape <start = 0, end = 1> (x)
  four = Shape <start = 2, end = 3> (x)
  size = Concat <axis = 0> (first, four)
  start = Expand (zero, size)
  y = Loop (count, , start) <body = b (int64 i, bool c, float[B, 4] s) => (bool d, float[B, 4] n) {
    xi = Gather <axis = 1> (x, i) t = Add (s, xi) n = Sin (t) d = Identity (c) }>
}
"""
THREE = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T, 4] x) => (float[T, 4] y) <float[3, 1] k = {1, 2, 3}> { y = Mul (x, k) }
"""

ENDLESS_WHEN_LONG = """
<ir_version: 8, opset_import: ["": 18]>
g (float[T] x) => (float y) <int64 many = {40}, bool yes = {1}, float two = {2}> {
  size = Size (x) long = Greater (size, many)
  y = Loop <body = b (int64 i, bool c, float s) => (bool go, float n) { n = Tanh (s) go = Identity (long) }> ( , yes, two)
}
"""


def test_model_is_compared_with_its_optimised_version():
    bench = ortscan.bench(parsed(RECURRENCE), sizes={"T": [3, 5]}, **LITTLE)
    assert [model.name for model in bench.models] == ["model 1", "optimized"]
    assert [result.label for result in bench.results] == ["T=3", "T=5"]
    assert [len(timing.rounds) for result in bench.results for timing in result.timings] == [2] * 4
    assert all(0 < timing.best <= timing.median for result in bench.results for timing in result.timings)
    assert bench.models[0].file_bytes == parsed(RECURRENCE).ByteSize()
    assert [loop.op_type for loop in bench.models[0].loops] == ["Scan"]
    assert all((model.peak_bytes is not None) == (sys.platform in ("linux", "darwin")) for model in bench.models)
    assert len(bench.summary().splitlines()) == 2
    assert not any(result.ratio().is_measurable for result in bench.results), "two rounds are too few"


def test_default_sizes_have_many_steps():
    bench = ortscan.bench(parsed(LOOP), parsed(LOOP), **LITTLE)
    assert [dict(result.sizes) for result in bench.results] == [{"B": 1, "T": 64}, {"B": 1, "T": 256}, {"B": 8, "T": 64}]


@pytest.mark.parametrize(("text", "steps"), [(MAP, {"T"}), (LOOP, {"T"}), (PLAIN, set())])
def test_the_dimensions_of_steps_are_found(text, steps):
    model = parsed(text)
    assert dims_of_steps(model, input_specs(model.graph)) == steps


def test_refused_sizes_are_noted_and_not_timed():
    bench = ortscan.bench(parsed(THREE), parsed(THREE), sizes={"T": [3, 5]}, **LITTLE)
    assert [result.label for result in bench.results] == ["T=3"]
    assert bench.notes[0].startswith("not timed at T=5: model 1 does not run: ")


def test_model_that_refuses_default_sizes_is_timed_at_a_fallback():
    bench = ortscan.bench(parsed(THREE), parsed(THREE), **LITTLE)
    assert bench.results[0].label == "T=3"


def test_callers_inputs_are_timed():
    bench = ortscan.bench(parsed(MAP), parsed(MAP), inputs={"x": np.ones((7, 4), np.float32)}, **LITTLE)
    assert [result.label for result in bench.results] == ["T=7"]


OTHER_INPUT = PLAIN.replace("x)", "z)")
UNKNOWN_OPERATOR = PLAIN.replace("Relu", "NoSuchOperator")


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([], {}, "bench needs at least one model"),
        ([PLAIN, OTHER_INPUT], {}, "model 1 and model 2 cannot be run on the same inputs"),
        ([PLAIN, UNKNOWN_OPERATOR], {}, "model 2 does not load on onnxruntime"),
        ([PLAIN, PLAIN], {"sizes": {"Q": 3}}, "sizes has 'Q', which is no free dimension; the free dimensions are: 'T'"),
        ([PLAIN, PLAIN], {"sizes": {"T": 3}, "shapes": {"x": [2, 4]}}, "sizes gives 'T' a size, and so do shapes"),
        ([PLAIN, PLAIN], {"sizes": {"T": "3"}}, "sizes: 'T' must have a whole number"),
        ([PLAIN, PLAIN], {"sizes": {"T": list(range(99))}}, "more than 64 combinations"),
        ([PLAIN, PLAIN], {"sizes": [3]}, "sizes must be a dict"),
        ([PLAIN, PLAIN], {"rounds": 0}, "rounds must be"),
        ([PLAIN, PLAIN], {"seconds": float("nan")}, "seconds must be"),
        ([PLAIN, PLAIN], {"threads": -1}, "threads must be"),
        ([PLAIN, PLAIN], {"inputs": [{}, {}]}, "inputs"),
        ([THREE, THREE], {"sizes": {"T": 5}}, "There is nothing to time: not timed at T=5"),
    ],
)
def test_untimable_models_are_refused(models, options, message):
    with pytest.raises(ortscan.OrtscanError, match=message.replace("(", r"\(")):
        ortscan.bench(*map(parsed, models), **options)


def test_a_loop_that_does_not_end_is_not_timed(monkeypatch):
    monkeypatch.setattr(measure, "_LONGEST_RUN", 0.5)
    with pytest.raises(ortscan.OrtscanError, match=r"still running after .*; a loop may not end on generated inputs"):
        ortscan.bench(parsed(ENDLESS), parsed(ENDLESS), **LITTLE)
    with pytest.raises(ortscan.OrtscanError, match="still running after"):
        ortscan.bench(parsed(ENDLESS), parsed(ENDLESS), sizes={"T": [2, 3, 5, 7, 9, 11]}, **LITTLE)


def test_sizes_at_which_runs_end_are_timed(monkeypatch):
    monkeypatch.setattr(measure, "_LONGEST_RUN", 0.5)
    model = parsed(ENDLESS_WHEN_LONG)
    bench = ortscan.bench(model, model, **LITTLE)
    assert max(bench.results[0].sizes.values()) <= 40


def test_models_are_named_by_unique_paths():
    assert names_for(["a/m.onnx", "b/m.onnx", "b/n.onnx", b""]) == ["a/m.onnx", "b/m.onnx", "n.onnx", "model 4"]
    assert names_for(["a/m.onnx", "a/m.onnx"]) == ["m.onnx (1)", "m.onnx (2)"]


@pytest.fixture
def paths(tmp_path):
    for name, text in (("a.onnx", RECURRENCE), ("b.onnx", RECURRENCE)):
        onnx.save(parsed(text), tmp_path / name)
    return [str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]


def test_the_command_line_shows_models_times_and_loops_in_80_columns(paths, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["bench", *paths, "--size", "T=4,6", "--rounds", "2", "--seconds", "0.02"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert all(line.isprintable() and len(line) <= 80 for line in printed.out.splitlines())
    for said in ("1 thread, 2 rounds", "peak memory", "T=4", "T=6", "no measurable difference", "Scan"):
        assert said in " ".join(printed.out.split())


def test_the_command_line_gives_json(paths, capsys):
    assert main(["bench", *paths, "--shape", "x:4,4", "--rounds", "2", "--seconds", "0.02", "--json"]) == 0
    bench = json.loads(capsys.readouterr().out)["bench"]
    assert [model["name"] for model in bench["models"]] == ["a.onnx", "b.onnx"]
    assert bench["results"][0]["sizes"] == {"T": 4}


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--size", "T"], 2), (["--size", "T=x"], 2), (["--size", "Q=3"], 2), (["--rounds", "0"], 2), (["no.onnx"], 1)],
)
def test_wrong_arguments_are_one_line(paths, capsys, words, code):
    assert main(["bench", *paths, *words]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_nested_loop_counts_once_in_the_profile_of_a_real_run():
    body = "r = Scan <num_scan_inputs = 1, body = q (float v) => (float w) { w = Exp (v) }> (e) o = Relu (r)"
    text = f"""<ir_version: 8, opset_import: ["": 18]> g (float[9, 99] x) => (float[9, 99] y) {{
        ["outer"] y = Scan <num_scan_inputs = 1, body = b (float[99] e) => (float[99] o) {{ {body} }}> (x) }}"""
    with ExitStack() as stack:
        source = open_source(parsed(text), stack)
        times = times_of_loops(partial(TimedSession, source, "nested", 1), {"x": np.ones((9, 99), np.float32)}, 1e-5)
    assert [(loop.name, loop.op_type) for loop in times] == [("outer", "Scan")]
    assert times[0].share <= 1


def test_the_header_says_if_the_library_ran_the_compiled_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = ortscan.optimize(parsed(COMPILED), native=True, verify=False)
    assert " on the CPU, with ortscan's library, 1 thread" in ortscan.bench(compiled, compiled, **LITTLE).setting
    monkeypatch.setenv("ORTSCAN_NATIVE", "0")
    assert " on the CPU, without ortscan's library, 1 thread" in ortscan.bench(compiled, compiled, **LITTLE).setting
    assert "library" not in ortscan.bench(parsed(MAP), parsed(MAP), **LITTLE).setting
