"""Migrates many opset-8 Scans and compares each with onnxruntime's own, then prints how fast they became.

python -m tests.campaigns benchmarks.scan_8 [how many, 2000]
"""

import sys
from collections import Counter

import numpy as np
import onnx

import ortscan
from ortscan.migration import migrated
from ortscan.modelio import to_caller_type
from tests.campaigns.benchmarks.timing import best_ms
from tests.campaigns.fuzz.scan_cases import drawn_scans
from tests.support.numbers import assert_same_numbers
from tests.support.runtime import ort_run
from tests.support.scan_8_matrix import some_forms
from tests.support.text import parsed

TARGETS = (9, 11, 16, 21, 26)


def main(count: int) -> None:
    tally: Counter[str] = Counter()

    def compare(model: onnx.ModelProto, feeds: dict[str, np.ndarray], target: int) -> None:
        loaded, report = migrated(model, target)
        tally.update(scan.form for scan in report.scans)
        try:
            assert_same_numbers(ort_run(to_caller_type(loaded), feeds), ort_run(model, feeds))
            tally["equal"] += 1
        except AssertionError:
            tally["WRONG"] += 1

    for number, case in enumerate(drawn_scans(count, 8, "random_body")):
        compare(case.model, dict(case.feeds[0]), TARGETS[number % len(TARGETS)])
    print(f"{count} random models: {dict(tally)}", flush=True)
    tally.clear()
    for number, form in enumerate(some_forms(count, seed=count)):
        compare(form.model(), form.feeds(), TARGETS[number % len(TARGETS)])
    print(f"{count} forms: {dict(tally)}\n", flush=True)
    print("| tanh cell, opset 8 -> 18 | opset 8, ms | migrated, ms | ratio |\n|---|---|---|---|")
    for rows, width, lengths in ((32, 32, False), (32, 128, False), (32, 32, True), (1, 32, False), (1, 32, True), (1, 128, False)):
        model, feeds = tanh_cell(rows, 100, width, lengths)
        before, after = best_ms([model, ortscan.migrate(model, 18)], feeds)
        name = f"batch {rows}, width {width}{', rows of their own lengths' if lengths else ''}"
        print(f"| {name} | {before:.3f} | {after:.3f} | {before / after:.1f} |", flush=True)


def tanh_cell(rows: int, steps: int, width: int, lengths: bool) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    declared, used = ("int64[B] n, ", "n") if lengths else ("", "")
    weights = {name: (rng.standard_normal((width, width)) / width).astype(np.float32) for name in "WR"}
    text = f"""g ({declared}float[B,{width}] h, float[B,T,{width}] x) => (float[B,{width}] last, float[B,T,{width}] y) {{
        last, y = Scan <num_scan_inputs = 1, body = cell (float[{width}] hi, float[{width}] xi) => (float[{width}] ho, float[{width}] yo) {{
            a = MatMul (xi, W) r = MatMul (hi, R) s = Add (a, r) ho = Tanh (s) yo = Identity (ho)
        }}> ({used}, h, x) }}"""
    model = parsed(text, 8, ir_version=7, weights=weights)
    feeds = {"h": np.zeros((rows, width), np.float32), "x": rng.standard_normal((rows, steps, width)).astype(np.float32)}
    if lengths:
        feeds["n"] = rng.integers(1, steps + 1, rows)
    return model, feeds


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
