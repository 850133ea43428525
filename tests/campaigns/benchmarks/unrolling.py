"""Prints what writing loops out costs and gains: loading, running, nodes; and the same for a few steps at a time.

python -m tests.campaigns benchmarks.unrolling [part of a model's name ...]
"""

import sys
import time
from collections.abc import Iterator

import numpy as np
import onnx

import ortscan
from tests.campaigns.benchmarks.timing import best_ms, session_of
from tests.support.corpus import corpus_models
from tests.support.standalone import loops_of_length
from tests.support.text import parsed

HEADER = '<ir_version: 9, opset_import: ["": 18]>'
CELLS = {
    "tanh": "t = MatMul (h{0}, R) u = Add (t, x{0}) h{1} = Tanh (u)",
    "gated": "t = MatMul (h{0}, R) u = Add (t, x{0}) g = Sigmoid (u) c = Tanh (u) m = Sub (h{0}, c) n = Mul (g, m) h{1} = Add (n, c)",
}


def main() -> None:
    print("| loop | steps | nodes in the body | nodes written out | load, ms | run, ms | ratio |")
    print("|---|---|---|---|---|---|---|")
    wanted = sys.argv[1:]
    for param in corpus_models(only=lambda name: "post__" not in name and (not wanted or any(part in name for part in wanted))):
        (model,) = param.values
        for steps in (16, 64):
            for loop in loops_of_length(model.load(), model.feeds(), steps):
                after = ortscan.optimize(loop.model, passes=["unroll"], max_unroll=steps)
                row(f"{model.name} {loop.name}", steps, loop.body, loop.model, after, loop.feeds)
    print("\n| chain of tanh cells | nodes | load, ms |\n|---|---|---|")
    for steps in (16, 64, 256, 1024, 4096):
        after = ortscan.optimize(several_steps("tanh", steps, 1, 32), passes=["unroll"], max_unroll=steps)
        print(f"| {steps} steps | {len(after.graph.node)} | {loading(after):.0f} |", flush=True)
    print("\n| cell | width | one step at a time, ms | " + " | ".join(f"{k} at a time" for k in (2, 4, 8, 16)) + " | written out |")
    print("|---|---|---|---|---|---|---|---|")
    for cell in CELLS:
        for width in (8, 64, 256):
            print(f"| {cell} | {width} | {' | '.join(partial(cell, width))} |", flush=True)


def row(name: str, steps: int, body: int, before: onnx.ModelProto, after: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> None:
    old, new = best_ms([before, after], feeds)
    loads = f"{loading(before):.1f} -> {loading(after):.1f}"
    print(
        f"| {name} | {steps} | {body} | {len(after.graph.node)} | {loads} | {old:.3f} -> {new:.3f} | {old / new:.2f} |", flush=True
    )


def loading(model: onnx.ModelProto) -> float:
    """The best of three in ms."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        session_of(model)
        best = min(best, (time.perf_counter() - start) * 1000)
    return best


def partial(cell: str, width: int) -> Iterator[str]:
    steps, draw = 128, np.random.default_rng(0).standard_normal
    feeds = {"xs": draw((steps, 1, width)).astype(np.float32), "h0": draw((1, width)).astype(np.float32)}
    single = several_steps(cell, steps, 1, width)
    yield f"{best_ms([single, single], feeds)[0]:.3f}"
    for each in (2, 4, 8, 16):
        blocked = several_steps(cell, steps, each, width)
        yield f"{best_ms([single, blocked], feeds)[1]:.3f}"
    whole = ortscan.optimize(single, passes=["unroll"], max_unroll=steps)
    yield f"{best_ms([single, whole], feeds)[1]:.3f}"


def several_steps(cell: str, steps: int, each: int, width: int) -> onnx.ModelProto:
    """A Scan whose body does `each` steps of `cell`."""
    rows = " ".join(renamed(CELLS[cell].format(i, i + 1), i) for i in range(each))
    names = ", ".join(f"x{i}" for i in range(each))
    split = f"{names} = Split <axis = 0, num_outputs = {each}> (x)" if each > 1 else "x0 = Identity (x)"
    join = f"y = Concat <axis = 0> ({', '.join(f'h{i + 1}' for i in range(each))})" if each > 1 else "y = Identity (h1)"
    text = f"""{HEADER} g (float[{steps},1,{width}] xs, float[1,{width}] h0) => (float[1,{width}] hT, float[{steps},1,{width}] ys)
    <int64[3] cut = {{{steps // each},{each},{width}}}, int64[3] whole = {{{steps},1,{width}}}> {{
        b = Reshape (xs, cut)
        hT, z = Scan <num_scan_inputs = 1, body = step (float[1,{width}] h0, float[{each},{width}] x)
            => (float[1,{width}] hn, float[{each},{width}] y) {{ {split} {rows} {join} hn = Identity (h{each}) }}> (h0, b)
        ys = Reshape (z, whole) }}"""
    return parsed(text, weights={"R": (np.random.default_rng(1).standard_normal((width, width)) / width).astype(np.float32)})


def renamed(step: str, number: int) -> str:
    """Give the inner values of a step names of their own."""
    for name in "tugcmn":
        step = step.replace(f" {name} ", f" {name}_{number} ").replace(f"({name},", f"({name}_{number},")
        step = step.replace(f", {name})", f", {name}_{number})").replace(f"({name})", f"({name}_{number})")
        step = f"{name}_{number}{step[1:]}" if step.startswith(f"{name} ") else step
    return step


if __name__ == "__main__":
    main()
