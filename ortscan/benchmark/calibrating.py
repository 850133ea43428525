"""Measure the ``Costs`` of this machine with small models that run alternately on one thread.

Each cost is the difference between the run times of two models that differ in one thing, so shared overheads cancel. The run time
of a model is the 10th percentile of all its runs, because other programs on the machine disturb the fastest runs least. onnxruntime
does not optimise these models.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx

from ortscan.benchmark.rounds import clock_for, time_in_turns
from rewrites.base.abilities import Costs

__all__ = ["calibrated"]

_STEPS, _LESS, _NODES = 400, 16, 8
_NARROW, _WIDE = 8, 4096
_NEAR, _FAR, _NUMBERS = 1 << 16, 1 << 22, 1 << 14
_LINKS, _FEW = 10, 5
_ROWS, _INNER, _COLUMNS = 64, 96, 64
_LEAST = 0.001
"""The lower bound of a cost. Costs are positive, but noise may hide a difference."""


def calibrated(seconds: float) -> Costs:
    """Return the costs of this machine, measured in about ``seconds``."""
    models = _models()
    clock = clock_for(1)
    runs = [_run(text, feeds) for text, feeds in models.values()]
    for run in runs:
        run()
    turns = time_in_turns(runs, seconds, clock)
    nanoseconds = [1e9 * float(np.percentile([run for turn in model for run in turn], 10)) for model in turns]
    return _costs(dict(zip(models, nanoseconds, strict=True)))


def _costs(nanoseconds: Mapping[str, float]) -> Costs:
    """Compute the costs from the run time of each model in nanoseconds."""
    node = (nanoseconds["loop of more nodes"] - nanoseconds["loop"]) / (_NODES * _STEPS)
    turn = (nanoseconds["loop"] - nanoseconds["short loop"]) / (_STEPS - _LESS)
    operator = (nanoseconds["operators"] - nanoseconds["a few operators"]) / (4 * (_LINKS - 1))
    costs = {
        "start": nanoseconds["short loop"] - nanoseconds["a few operators"] + 4 * operator - turn * _LESS,
        "step": turn - 3 * node,
        "node": node,
        "loop_byte": (nanoseconds["wide loop"] - nanoseconds["loop"]) / (_STEPS * 4 * (_WIDE - _NARROW)),
        "operator": operator,
        "near_byte": (nanoseconds["near stacks"] - nanoseconds["near stack"]) / ((_FEW - 1) * 4 * _NEAR),
        "far_byte": (nanoseconds["far stacks"] - nanoseconds["far stack"]) / ((_FEW - 1) * 4 * _FAR),
        "product": (nanoseconds["products"] - nanoseconds["a product"]) / ((_FEW - 1) * _ROWS * _INNER * _COLUMNS),
        "power": (nanoseconds["powers"] - nanoseconds["a power"]) / ((_FEW - 1) * _NUMBERS),
        "logarithm": (nanoseconds["logarithms"] - nanoseconds["a logarithm"]) / ((_FEW - 1) * _NUMBERS),
    }
    return Costs(**{name: max(number, _LEAST) for name, number in costs.items()})


def _models() -> dict[str, tuple[str, dict[str, np.ndarray]]]:
    """Return a dict from the name of each model to its text (in ONNX's text format) and its inputs."""
    return {
        "loop": _loop(_STEPS, _NARROW, 3),
        "short loop": _loop(_LESS, _NARROW, 3),
        "loop of more nodes": _loop(_STEPS, _NARROW, 3 + _NODES),
        "wide loop": _loop(_STEPS, _WIDE, 3),
        "operators": _operators(_LINKS),
        "a few operators": _operators(1),
        "near stack": _adding(1, _NEAR),
        "near stacks": _adding(_FEW, _NEAR),
        "far stack": _adding(1, _FAR),
        "far stacks": _adding(_FEW, _FAR),
        "a product": _products(1),
        "products": _products(_FEW),
        **{name: _repeated_operator(op, count) for op, *names in _CURVES for name, count in zip(names, (1, _FEW), strict=True)},
    }


_CURVES = (("Exp", "a power", "powers"), ("Log", "a logarithm", "logarithms"))


def _loop(steps: int, width: int, nodes: int) -> tuple[str, dict[str, np.ndarray]]:
    """Return the text and the inputs of a model with one Scan.

    The Scan runs ``steps`` steps on rows of ``width`` numbers. Its body has ``nodes`` nodes, a state, two scan inputs and a stacked
    output.
    """
    row, stack = f"float[{width}]", f"float[{steps}, {width}]"
    chain = " ".join(f"h{number + 1} = Neg (h{number})" for number in range(2, nodes - 1))
    text = f"""g ({row} s, {stack} xs, {stack} zs) => ({stack} ys) {{
        f, ys = Scan <num_scan_inputs = 2, body = b ({row} h, {row} x, {row} z) => ({row} h{nodes - 1}, {row} y) {{
            h1 = Mul (x, h) h2 = Add (h1, z) {chain} y = Identity (h2) }}> (s, xs, zs) }}"""
    return text, {"s": _numbers(width), "xs": _numbers(steps, width), "zs": _numbers(steps, width)}


def _operators(links: int) -> tuple[str, dict[str, np.ndarray]]:
    """Return the text and the inputs of a model with operators that often replace loops, on small tensors.

    The model has ``links`` groups of a Mul, an Add, a Split and a Concat.
    """
    chain = " ".join(
        f"m{k} = Mul (y{k}, x) a{k} = Add (m{k}, x) p{k}, q{k} = Split <axis = 1> (a{k}) y{k + 1} = Concat <axis = 1> (q{k}, p{k})"
        for k in range(links)
    )
    stack = "float[16, 64]"
    return f"g ({stack} y0, {stack} x) => ({stack} y{links}) {{ {chain} }}", {"y0": _numbers(16, 64), "x": _numbers(16, 64)}


def _adding(count: int, width: int) -> tuple[str, dict[str, np.ndarray]]:
    chain = " ".join(f"y{number + 1} = Add (y{number}, x)" for number in range(count))
    return f"g (float[{width}] y0, float[{width}] x) => (float[{width}] y{count}) {{ {chain} }}", {
        "y0": _numbers(width),
        "x": _numbers(width),
    }


def _products(count: int) -> tuple[str, dict[str, np.ndarray]]:
    results = ", ".join(f"float[{_ROWS}, {_COLUMNS}] y{number}" for number in range(count))
    nodes = " ".join(f"y{number} = MatMul (x, w)" for number in range(count))
    text = f"g (float[{_ROWS}, {_INNER}] x, float[{_INNER}, {_COLUMNS}] w) => ({results}) {{ {nodes} }}"
    return text, {"x": _numbers(_ROWS, _INNER), "w": _numbers(_INNER, _COLUMNS)}


def _repeated_operator(operator: str, count: int) -> tuple[str, dict[str, np.ndarray]]:
    results = ", ".join(f"float[{_NUMBERS}] y{number}" for number in range(count))
    nodes = " ".join(f"y{number} = {operator} (x)" for number in range(count))
    return f"g (float[{_NUMBERS}] x) => ({results}) {{ {nodes} }}", {"x": _numbers(_NUMBERS)}


def _numbers(*shape: int) -> np.ndarray:
    return np.full(shape, 0.5, np.float32)


def _run(text: str, feeds: Mapping[str, np.ndarray]) -> Callable[[], Any]:
    import onnxruntime as ort
    from onnxruntime.capi.onnxruntime_inference_collection import InferenceSession  # the original class, not a patched one

    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>\n{text}')
    session = InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return partial(session.run, None, dict(feeds))
