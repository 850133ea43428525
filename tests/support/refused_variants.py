"""All variants of Scan, RNN, GRU and LSTM that onnxruntime refuses, aborts on or computes wrongly, and their outcome in ortscan.

`python -m tests.support.refused_variants` writes the table. `--run N` prints a line of JSON for each variant from number N on.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.support.text import parsed

__all__ = ["TABLE", "VARIANTS", "Outcome", "Variant", "outcomes", "table"]

TABLE = Path(__file__).parents[2] / "ortscan" / "docs" / "reference" / "variants.md"
_HEAD = """# Variants that onnxruntime does not run

Made by `python -m tests.support.refused_variants`. Each row is a model with an unusual form of an operator. It runs in an
`ortscan.InferenceSession` with the entry `ortscan.custom_ops`. Its results are compared with those of a numpy loop that follows the
operator's definition. *How* names the rules and other rewrites that make the model run. Only a model with the rewrite `python` needs
Python. *Refused* means that ortscan rejects the model or an input, because the operator's definition does not allow it.

| variant | onnxruntime alone | with ortscan | how |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Variant:
    """A model, its inputs, its expected outputs (None: it has to be refused), and the behaviour of onnxruntime."""

    name: str
    alone: str
    model: Callable[[], onnx.ModelProto]
    feeds: Callable[[], Mapping[str, np.ndarray]]
    expected: Callable[[], Sequence[np.ndarray]] | None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a variant: `runs`, `refused` or what is wrong, with details."""

    name: str
    status: str
    how: str = ""


def _text(body: str, opset: int = 18, ir_version: int = 8) -> Callable[[], onnx.ModelProto]:
    return lambda: parsed(body, opset, ir_version=ir_version)


def _scans() -> Iterator[Variant]:
    from tests.support.loop_oracle import run_model

    def scan(name: str, alone: str, text: str, opset: int = 18, numbers: Sequence[Any] = (), **feeds: np.ndarray) -> Variant:
        model = _text(text, opset)
        known = (lambda: list(numbers)) if numbers else (lambda: run_model(model(), feeds))
        return Variant(f"Scan-{opset}: {name}", alone, model, lambda: feeds, known)

    def refused(name: str, alone: str, text: str, opset: int = 18, **feeds: np.ndarray) -> Variant:
        return Variant(f"Scan-{opset}: {name}", alone, _text(text, opset), lambda: feeds, None)

    f = np.float32
    add = "b (float[2] s, float[2] xt) => (float[2] n, float[2] y) { n = Add (s, xt) y = Mul (n, n) }"
    keep = "b (float[2] s, float[2] xt) => (float[2] n, float[2] y) { p = Mul (s, s) q = Add (p, xt) n = Sin (q) y = Identity (n) }"
    nine = (
        "g (float[2] h, float[T, 2] x) => (float[2] l, float[T, 2] ys) { l, ys = Scan <num_scan_inputs = 1, body = BODY> (h, x) }"
    )
    h, x0, x3 = np.ones(2, f), np.zeros((0, 2), f), np.arange(6, dtype=f).reshape(3, 2)
    for opset in (9, 16, 24):
        yield scan("no step", "fails", nine.replace("BODY", keep), opset, h=h, x=x0)
    yield scan("no step, a sum", "fails", nine.replace("BODY", add), 18, h=h, x=x0)
    axes = "num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1], scan_output_directions = [1], scan_input_directions = [1]"
    turned = nine.replace("float[T, 2]", "float[2, T]").replace("num_scan_inputs = 1", axes)
    yield scan("no step, other axes, backwards", "fails", turned.replace("BODY", keep), 18, h=h, x=x0.T)
    cell = "b (float[B, 3] s, float[B, 2] xt) => (float[B, 3] n, float[B, 3] y) "
    cell += "{ a = MatMul (xt, W) r = MatMul (s, R) q = Add (a, r) n = Tanh (q) y = Identity (n) }"
    rnn = "g (float[B, 3] h, float[T, B, 2] x) => (float[B, 3] l, float[T, B, 3] ys) <float[2, 3] W = {1, 2, 3, 4, 5, 6},"
    rnn += "float[3, 3] R = {1, 0, 0, 0, 1, 0, 0, 0, 1}> { l, ys = Scan <num_scan_inputs = 1, body = " + cell + "> (h, x) }"
    for steps, rows in ((0, 2), (3, 0), (0, 0)):
        feeds = {"h": np.full((rows, 3), 0.5, f), "x": np.ones((steps, rows, 2), f)}
        numbers = () if steps else (feeds["h"], np.zeros((0, rows, 3), f))
        yield scan(f"a cell, {steps} steps, {rows} rows", "fails" if not steps else "runs", rnn, 18, numbers, **feeds)
    grows = "b (float[N] s, float[1] xt) => (float[M] n) { n = Concat <axis = 0> (s, xt) }"
    grown = f"g (float[2] h, float[T, 1] x) => (float[K] l) {{ l = Scan <num_scan_inputs = 1, body = {grows}> (h, x) }}"
    yield scan("a state that grows", "fails", grown, 18, h=h, x=np.ones((3, 1), f))
    yield scan("a state that grows, no step", "fails", grown, 18, h=h, x=np.ones((0, 1), f))
    summed = "b (float[N] s, float[1] xt) => (float[M] n, float[1] y) "
    summed += "{ y = ReduceSum <keepdims = 1> (s) n = Concat <axis = 0> (s, xt) }"
    both = "g (float[2] h, float[T, 1] x) => (float[K] l, float[T, 1] ys) "
    both += f"{{ l, ys = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1], body = {summed}> (h, x) }}"
    yield scan("a state that grows, results", "fails", both, 18, h=h, x=np.arange(4, dtype=f).reshape(4, 1))
    same = "b (float[2] s, float[2] xt) => (float[2] n, float[2] n) { n = Add (s, xt) }"
    yield scan("one value returned twice", "wrong", nine.replace("BODY", same), 18, h=h, x=x3)
    through = "b (float[2] s, float[2] xt) => (float[2] n, float[2] xt) { n = Add (s, xt) }"
    yield scan("an input returned", "wrong", nine.replace("BODY", through), 18, h=h, x=x3)
    where = "b (uint64[2] s, uint64[2] xt) => (uint64[2] n, uint64[2] y) "
    where += "{ c = Greater (xt, s) m = Where (c, xt, s) n = Add (m, xt) y = Identity (n) }"
    u64 = nine.replace("float", "uint64").replace("BODY", where)
    for steps in (0, 3):
        xs = np.arange(2 * steps, dtype=np.uint64).reshape(steps, 2)
        state, rows_out = np.zeros(2, np.uint64), []
        for row in xs:
            state = np.maximum(row, state) + row
            rows_out.append(state)
        numbers = (state, np.array(rows_out, np.uint64).reshape(steps, 2))
        yield scan(f"Where on uint64, {steps} steps", "no kernel", u64, 18, numbers, h=np.zeros(2, np.uint64), x=xs)
    top = "b (uint64[4] xt) => (uint64[2] v, int64[2] i) { v, i = TopK (xt, k) }"
    tops = "g (uint64[T, 4] x) => (uint64[T, 2] vs, int64[T, 2] is) <int64[1] k = {2}> "
    tops += f"{{ vs, is = Scan <num_scan_inputs = 1, body = {top}> (x) }}"
    numbers = (np.array([[4, 3], [9, 8]], np.uint64), np.array([[2, 0], [0, 1]]))
    yield scan("TopK on uint64", "no kernel", tops, 18, numbers, x=np.array([[3, 1, 4, 2], [9, 8, 7, 6]], np.uint64))
    shorts = "b (int16[2] s, int16[2] xt) => (int16[2] n, int16[2] y) { m = Max (s, xt) n = Add (m, xt) y = Min (s, n) }"
    short = nine.replace("float", "int16").replace("BODY", shorts)
    numbers = (np.array([-5536, 8], np.int16), np.array([[5, -5], [-5536, 4]], np.int16))
    feeds = {"h": np.array([5, -5], np.int16), "x": np.array([[1, 2], [30000, 4]], np.int16)}
    yield scan("Max on int16", "no kernel", short, 18, numbers, **feeds)
    old = "b (float[2] s, float[2] xt) => (float[2] n, float[2] y) { p = Mul (s, s) q = Add (p, xt) n = Tanh (q) y = Identity (n) }"
    eight = "g (int64[B] lens, float[B, 2] h, float[B, T, 2] x) => (float[B, 2] l, float[B, T, 2] ys) "
    eight += f"{{ l, ys = Scan <num_scan_inputs = 1, body = {old}> (lens, h, x) }}"
    bare = eight.replace("int64[B] lens, ", "").replace("(lens, h, x)", '("", h, x)')
    for lens in ([0, 2, 3], [0, 0, 0]):
        feeds = {"lens": np.array(lens), "h": np.ones((3, 2), f), "x": np.arange(18, dtype=f).reshape(3, 3, 2) / 9}
        yield scan(f"sequence_lens {lens}", "fails", eight, 8, **feeds)
    backwards = eight.replace("num_scan_inputs = 1", "num_scan_inputs = 1, directions = [1]")
    feeds = {"lens": np.array([0, 2]), "h": np.ones((2, 2), f), "x": np.arange(12, dtype=f).reshape(2, 3, 2) / 9}
    yield scan("sequence_lens [0, 2], backwards", "fails", backwards, 8, **feeds)
    yield scan("no step", "uninitialised memory", bare, 8, h=np.ones((3, 2), f), x=np.zeros((3, 0, 2), f))
    yield scan("no row", "fails", bare, 8, h=np.ones((0, 2), f), x=np.zeros((0, 3, 2), f))
    symbolic = bare.replace("float[2] s, float[2] xt", "float[D] s, float[D] xt").replace(
        "(float[2] n, float[2] y)", "(float[D] n, float[D] y)"
    )
    yield scan("no row, sizes not declared", "kills the process", symbolic, 8, h=np.ones((0, 2), f), x=np.zeros((0, 3, 2), f))
    for lens in ([-1, 2], [4, 2]):
        feeds = {"lens": np.array(lens), "h": np.ones((2, 2), f), "x": np.zeros((2, 3, 2), f)}
        yield refused(f"sequence_lens {lens} of 3 steps", "fails", eight, 8, **feeds)
    plain = nine.replace("BODY", keep)
    yield refused("num_scan_inputs 0", "fails", plain.replace("num_scan_inputs = 1", "num_scan_inputs = 0"), 18, h=h, x=x3)
    wrong_way = plain.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_directions = [-1]")
    yield refused("direction -1", "fails", wrong_way, 18, h=h, x=x3)
    yield refused(
        "axis 2 of 2", "fails", plain.replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_axes = [2]"), 18, h=h, x=x3
    )


def _recurrent() -> Iterator[Variant]:
    from tests.rewrites.recurrent_nodes.nodes import INPUTS, OneNode

    everything = frozenset({"B", "lengths", "initial_h", "initial_c", "P"})
    float64, bfloat16, int64 = onnx.TensorProto.DOUBLE, onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT64

    def node(kind: str, attributes: Mapping[str, Any] | None = None, extra: frozenset[str] = everything, **more: Any) -> OneNode:
        chosen = {"direction": "bidirectional", **(attributes or {})}
        return OneNode(kind, chosen, extra & {*INPUTS[kind]}, **more)

    def row(kind: str, name: str, alone: str, one: OneNode, steps: int = 3, rows: int = 2, lengths: Any = None) -> Variant:
        feeds = one.feeds(steps, rows, lengths)
        return Variant(f"{kind}: {name}", alone, one.model, lambda: feeds, lambda: one.expected(feeds))

    unlengthened = everything - {"lengths"}
    for kind in ("RNN", "GRU", "LSTM"):
        fails = "fails when it runs" if kind != "RNN" else "no kernel"
        yield row(kind, "double", fails, node(kind, element=float64))
        yield row(kind, "bfloat16", "no kernel", node(kind, element=bfloat16))
        yield row(kind, "layout 1", "fails", node(kind, {"layout": 1}))
        yield row(kind, "no hidden_size", "fails", node(kind, names_hidden_size=False))
        yield row(kind, "lengths of int64", "fails", node(kind, lengths_type=int64))
        yield row(kind, "lengths [1, B]", "fails", node(kind, lengths_shape=("1", "B")))
        if kind != "RNN":
            yield row(kind, "clip of 0", "fails", node(kind, {"clip": 0.0}))
        if kind != "RNN":
            none = "uninitialised memory" if kind == "LSTM" else "kills the process"
            yield row(kind, "no step", none, node(kind, extra=unlengthened), 0, 2)
            yield row(kind, "no row", "kills the process", node(kind, extra=unlengthened), 3, 0)
        yield row(kind, "double, no step", fails, node(kind, element=float64, extra=unlengthened), 0, 2)
        yield row(kind, "double, no row", fails, node(kind, element=float64, extra=unlengthened), 3, 0)
        gelu = {"activations": ["Gelu"] * (2 * {"RNN": 1, "GRU": 2, "LSTM": 3}[kind])}
        refused = node(kind, gelu)
        feeds = refused.feeds(3, 2)
        yield Variant(f"{kind}: activation Gelu", "fails", refused.model, lambda feeds=feeds: feeds, None)


def _all() -> list[Variant]:
    return [*_scans(), *_recurrent()]


VARIANTS = _all


def run(variant: Variant) -> Outcome:
    """Run one variant in a session with everything allowed."""
    import warnings

    import onnxruntime as ort

    import ortscan
    from tests.support.numbers import assert_same_numbers
    from tests.support.runtime import run_session

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("ortscan.custom_ops", "1")
    options.add_session_config_entry("ortscan.cache", "0")
    warnings.simplefilter("ignore")
    try:
        session = ortscan.InferenceSession(variant.model(), options, enable_fallback=0)
        got = run_session(session, variant.feeds())
    except Exception as error:  # onnxruntime's own classes among them
        text = " ".join(str(error).split())
        return Outcome(variant.name, "refused" if variant.expected is None else f"FAILS: {type(error).__name__}: {text[:160]}")
    report = session.ortscan.report
    fired = [] if report is None else [patch.rule for patch in report.patches]
    fired += (
        [] if report is None else [{"wider": "wider type", "python": "python"}.get(gap.fate, "kept") for gap in report.kernel_gaps]
    )
    how = ", ".join(dict.fromkeys([*(["migration"] if report is not None and report.migrated else []), *fired]))
    if variant.expected is None:
        return Outcome(variant.name, "RUNS, but should be refused", how)
    exact = any(array.dtype == np.float64 for array in got)
    narrow = any(str(array.dtype) == "bfloat16" for array in got)
    close = 1e-12 if exact else 5e-2 if narrow else 1e-5
    try:
        assert_same_numbers(got, list(variant.expected()), close, close, "")
    except AssertionError as error:
        return Outcome(variant.name, f"WRONG: {' '.join(str(error).split())[:160]}", how)
    return Outcome(variant.name, "runs", how)


def outcomes() -> list[Outcome]:
    """Run all variants, in two halves at the same time."""
    names = [variant.name for variant in _all()]
    half = len(names) // 2
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda part: _outcomes(names, *part), [(0, half), (half, len(names))])
    return first + second


def _outcomes(names: Sequence[str], first: int, end: int) -> list[Outcome]:
    """Run variants in subprocesses. If a variant ends its process, this is recorded and the next variant runs in a new process."""
    results: list[Outcome] = []
    while first + len(results) < end:
        command = [sys.executable, "-m", "tests.support.refused_variants", "--run", str(first + len(results)), str(end)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=TABLE.parents[3], check=False, timeout=300)
        results += [Outcome(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode and first + len(results) < end:
            results.append(Outcome(names[first + len(results)], f"DIES: exit code {done.returncode} {done.stderr[-300:]}"))
    return results


def table(found: Sequence[Outcome]) -> str:
    """Return the table as Markdown."""
    alone = {variant.name: variant.alone for variant in _all()}
    rows = [f"| {each.name} | {alone[each.name]} | {each.status} | {each.how} |\n" for each in found]
    return _HEAD + "".join(rows)


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--run"]:
        with tempfile.TemporaryDirectory():
            for variant in _all()[int(arguments[1]) : int(arguments[2])]:
                print(json.dumps(asdict(run(variant))), flush=True)
        return
    text = table(outcomes())
    TABLE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
