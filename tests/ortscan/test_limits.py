"""Limits of time and memory: the work is done in a subprocess, which is ended at the limit."""

import subprocess
import sys
import time

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import ortscan
from ortscan.errors import LimitExceeded, OptionError, OrtscanWarning
from rewrites.base.report import RewriteReport
from tests.support.text import model_from_text, parsed

SUMS = """g (float[T,4] xs) => (float[T,4] ys) {
    h0 = Constant <value = float[4] {0, 0, 0, 0}> ()
    hn, ys = Scan <num_scan_inputs = 1, body = b (float[4] h, float[4] x) => (float[4] h1, float[4] k) { h1 = Add (h, x) k = Tanh (h1) }> (h0, xs)
}"""
FOR_EVER = """g (float[4] x) => (float[4] y) {
    m = Constant <value = int64 {1000000000000000}> () t = Constant <value = bool {1}> () zero = Constant <value = int64 {0}> ()
    n = Loop (m, t, zero) <body = b (int64 i, bool c, int64 s) => (bool go, int64 z) {
        go = Identity (c) seven = Constant <value = int64 {7}> () a = Add (s, i) z = Mod (a, seven) }>
    y = Loop (n, t, x) <body = b2 (int64 i2, bool c2, float[4] s2) => (bool go2, float[4] z2) { go2 = Identity (c2) z2 = Neg (s2) }>
}"""
WIDE = f"""<ir_version: 10, opset_import: ["": 18]> g (float[4] x) => (float[4] y) {{
    s = Constant <value = int64[1] {{{1 << 30}}}> () q0 = ConstantOfShape (s) q = ReduceSum <keepdims = 0> (q0)
    y = Scan <num_scan_inputs = 1, body = b (float a) => (float c) {{ d = Add (a, q) c = Tanh (d) }}> (x)
}}"""


@pytest.fixture(scope="module")
def sums() -> onnx.ModelProto:
    return model_from_text(SUMS, 18)


@pytest.mark.long
def test_within_its_limits_everything_is_as_it_is_without(sums, tmp_path):
    limits = {"time_limit": 300, "memory_limit": 4 << 30}
    expected = ortscan.optimize(sums)
    onnx.save(sums, tmp_path / "in.onnx")
    assert ortscan.optimize(sums, **limits) == expected
    result = ortscan.optimize(str(tmp_path / "in.onnx"), **limits, output=tmp_path / "out.onnx")
    assert result == onnx.load(tmp_path / "out.onnx") == expected
    assert isinstance(ortscan.optimize(ir.from_proto(sums), time_limit=300), ir.Model)


@pytest.mark.long
def test_reports_warnings_and_errors_come_through(sums):
    report = ortscan.explain(sums, time_limit=300, target="onnx")
    assert isinstance(report, RewriteReport)
    assert report == ortscan.explain(sums, target="onnx")
    assert report.to_html().count("<svg") == 2
    with pytest.raises(ortscan.OrtscanError, match=r"opset must be in 1\.\."):
        ortscan.migrate(sums, 999, time_limit=300)
    with pytest.warns(OrtscanWarning, match="nothing was compared: 'q0' would take 4096 MiB"):
        ortscan.optimize(parsed(WIDE), verify="full", time_limit=300)


def test_what_takes_longer_is_ended_with_all_its_processes():
    started = time.perf_counter()
    with pytest.raises(LimitExceeded, match="migrate took longer than its time_limit of 4 seconds"):
        ortscan.migrate(model_from_text(FOR_EVER, 13), 18, verify="full", time_limit=4)
    assert time.perf_counter() - started < 20


def test_what_takes_more_memory_is_ended():
    text = "g (float[2,4096] x) => (float[2,4096] y) { y = MatMul (x, w) }"
    model = parsed(text, weights={"w": np.ones((4096, 4096), np.float32)})
    with pytest.raises(LimitExceeded, match="memory_limit of 33554432 bytes"):
        ortscan.optimize(model, opset=21, memory_limit=32 << 20)


@pytest.mark.parametrize("limit", [0, -1, "5", True, float("nan"), float("inf"), np.zeros(2), [1]])
@pytest.mark.parametrize("name", ["time_limit", "memory_limit"])
def test_a_limit_that_is_none_is_refused(sums, name, limit):
    for work in (ortscan.optimize, ortscan.explain, lambda model, **limits: ortscan.migrate(model, 18, **limits)):
        with pytest.raises(OptionError, match=f"{name} must be"):
            work(sums, **{name: limit})


def on_the_command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "ortscan", *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.long
def test_the_command_line_keeps_to_limits_too(sums, tmp_path):
    onnx.save(sums, tmp_path / "sums.onnx")
    onnx.save(model_from_text(FOR_EVER, 13), tmp_path / "for_ever.onnx")
    out = str(tmp_path / "out.onnx")
    done = on_the_command_line("optimize", str(tmp_path / "sums.onnx"), out, "--time-limit", "100", "--memory-limit", "4G")
    assert (done.returncode, done.stderr) == (0, "")
    assert onnx.load(out)
    ended = on_the_command_line("migrate", str(tmp_path / "for_ever.onnx"), out, "--opset", "18", "--time-limit", "4")
    assert (ended.returncode, ended.stderr) == (1, "ortscan: error: it took longer than the 4 seconds of --time-limit.\n")
    assert onnx.load(out).graph.node[0].op_type != "Loop"
    wrong = on_the_command_line("explain", out, "--time-limit", "0")
    assert wrong.returncode == 2
