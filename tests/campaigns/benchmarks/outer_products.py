"""Matrices that take up outer products: blocks of steps and LinearAttention against the loop.

``python -m tests.campaigns benchmarks.outer_products``, with a word for some of them alone. Printed are, for each, the microseconds of the loop,
of LinearAttention, of blocks of each length, one by one or side by side, and of what ``optimize`` chooses for targets ``cpu`` and
``onnx``; in one process, in turn, with one thread; at the end, for how many the choice is within a tenth of the best.
"""

import sys
from collections.abc import Iterator
from itertools import product
from unittest import mock

import numpy as np
import onnx

import ortscan
from rewrites.recurrences.outer_products import blocked_outer_products
from rewrites.recurrences.outer_products.block_plan import BlockPlan
from tests.campaigns.benchmarks.closed_forms import best_of_models
from tests.support.text import model_from_text

__all__ = ["main", "models"]

_AXES = "l = Constant <value = int64[1] {-1}> ()  m = Constant <value = int64[1] {-2}> ()  two = Constant <value = int64[2] {-1, -2}> ()"
_FAMILIES = {
    "linear attention": ("d = Identity (S)", "", ""),
    "RetNet": ("c = Constant <value = float {0.97}> ()  d = Mul (S, c)", "", ""),
    "a gate by head": ("a = Exp (g)  au = Unsqueeze (a, two)  d = Mul (S, au)", "{heads}", "{heads},"),
    "GLA": ("a = Exp (g)  au = Unsqueeze (a, l)  d = Mul (S, au)", "{heads},{keys}", "{heads},"),
    "Mamba-2": ("a = Exp (g)  au = Unsqueeze (a, two)  d = Mul (S, au)", "{heads}", ""),
}
"""The decay, the sizes of what it is made of, and the heads of keys and queries."""
_SIZES = ((1, 8, 8), (4, 16, 16), (4, 32, 32), (16, 16, 16), (8, 64, 64), (16, 64, 64), (1, 256, 256), (24, 128, 64))
_LENGTHS = tuple(product((16, 32, 64, 128), (False, True)))
_NEAR = 1.1


def models(steps: int) -> Iterator[tuple[str, onnx.ModelProto, dict[str, np.ndarray]]]:
    """Yield a name, a model and feeds of each."""
    for (name, (decay, gate, shared)), (heads, keys, values) in product(_FAMILIES.items(), _SIZES):
        own = (shared or ("" if name == "Mamba-2" else "{heads},")).format(heads=heads)
        sizes = {"k": f"{own}{keys}", "v": f"{heads},{values}", "q": f"{own}{keys}"}
        sizes |= {"g": gate.format(heads=heads, keys=keys)} if gate else {}
        text = f"""g (float[{heads},{keys},{values}] S0, {", ".join(f"float[{steps},{size}] {one}s" for one, size in sizes.items())})
            => (float[{steps},{heads},{values}] ys) {{
            last, ys = Scan <num_scan_inputs = {len(sizes)}, body = b (float[{heads},{keys},{values}] S,
                {", ".join(f"float[{size}] {one}" for one, size in sizes.items())}) => (float[{heads},{keys},{values}] n, float[{heads},{values}] y)
                {{ {_AXES} {decay}  ku = Unsqueeze (k, l)  vu = Unsqueeze (v, m)  o = MatMul (ku, vu)  n = Add (d, o)
                qu = Unsqueeze (q, m)  r = MatMul (qu, n)  y = Squeeze (r, m) }}> (S0, {", ".join(f"{one}s" for one in sizes)}) }}"""
        rng, model = np.random.default_rng(0), model_from_text(text, 18)
        shapes = {info.name: [dim.dim_value for dim in info.type.tensor_type.shape.dim] for info in model.graph.input}
        feeds = {one: rng.standard_normal(shape).astype(np.float32) / 8 for one, shape in shapes.items()}
        yield f"{name} {heads}x{keys}x{values}", model, feeds | ({"gs": -np.abs(feeds["gs"])} if gate else {})


def _in_blocks(model: onnx.ModelProto, length: int, *, is_flat: bool) -> onnx.ModelProto:
    plan = BlockPlan(length, is_flat, 0.0, 0)
    with (
        mock.patch.object(blocked_outer_products, "plan_of", return_value=plan),
        mock.patch.object(blocked_outer_products, "fewest_steps", return_value=length),
    ):
        return ortscan.optimize(model, target="onnx", verify=False)


def main() -> None:
    word, steps, ratios = sys.argv[1] if len(sys.argv) > 1 else "", 1024, list[tuple[float, str]]()
    lengths = " | ".join(f"{length}{' side by side' if is_flat else ''}" for length, is_flat in _LENGTHS)
    print(f"| {steps} steps | loop, µs | cpu | onnx | LinearAttention | {lengths} |\n|{'---|' * (5 + len(_LENGTHS))}")
    for name, model, feeds in models(steps):
        if word not in name:
            continue
        attention = ortscan.optimize(model, verify=False, skip=["blocked-outer-products"])
        chosen = [ortscan.optimize(model, target=target, verify=False) for target in ("cpu", "onnx")]
        blocks = [_in_blocks(model, length, is_flat=is_flat) for length, is_flat in _LENGTHS]
        loop, *times = best_of_models([model, *chosen, attention, *blocks], feeds, rounds=5)
        print(f"| {name} | {loop * 1e6:.0f} | {' | '.join(f'{loop / one:.1f}' for one in times)} |", flush=True)
        ratios += [(times[0] / min(times), f"{name}, cpu"), (times[1] / min(loop, times[1], *times[3:]), f"{name}, onnx")]
    near = sum(ratio <= _NEAR for ratio, _ in ratios)
    print(
        f"\n{near} of {len(ratios)} choices are within a tenth of the best; the mean takes {np.mean([one for one, _ in ratios]):.2f}."
    )
    for ratio, name in sorted(ratios, reverse=True)[:12]:
        print(f"{ratio:.2f}: {name}")


if __name__ == "__main__":
    main()
