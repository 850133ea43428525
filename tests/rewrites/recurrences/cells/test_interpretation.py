"""The interpretation of a body's values, evaluated in numbers, equals the body run on onnxruntime."""

import random
from collections import Counter
from collections.abc import Hashable

import numpy as np
import onnx
import pytest

from rewrites.driver.prepare import prepare
from rewrites.graph.context import Context
from rewrites.loops import ScanView, view
from rewrites.recurrences.cells.cell import source_of
from rewrites.recurrences.cells.interpretation import Interpretation
from rewrites.recurrences.cells.reading import Transposed
from tests.rewrites.apply import context_of, one_loop
from tests.rewrites.recurrences.cells.algebra import at, features_at
from tests.rewrites.recurrences.cells.random_bodies import ROWS, SHAPES, Body, random_body
from tests.support.runtime import ort_run

OFTEN = {"Add", "Clip", "Concat", "Einsum", "Gather", "Gemm", "GRU", "LSTM", "MatMul", "Mul", "Reshape", "RNN", "Slice", "Split"}


def scan_of(body: Body, rows: str, *, masked: bool = False, inferred: bool = True) -> tuple[ScanView, Context]:
    states, more = f"float[{rows},4] h, float[{rows},4] c, float[{rows},3] x", f", bool[{rows},1] k" if masked else ""
    text = f"""<ir_version: 10, opset_import: ["": 18]>
        g (float[{rows},4] h0, float[{rows},4] c0, float[T,{rows},3] xs, bool[T,{rows},1] ks) => (float[{rows},4] hn, float[{rows},4] cn) {{
        hn, cn = Scan <num_scan_inputs = {1 + masked}, body = step ({states}{more}) => (float[{rows},4] h1, float[{rows},4] c1) {{
            {" ".join(body.nodes)} h1 = Tanh (h) c1 = Tanh (c) }}> (h0, c0, xs{", ks" if masked else ""}) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in body.weights.items())
    ctx = context_of(model)
    if inferred:
        prepare(ctx)
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, ScanView)
    return loop, ctx


def numbers_of(body: Body, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all values of the step, computed by onnxruntime."""
    names = [name for name in body.shapes if name not in SHAPES]
    given = ", ".join(f"float[{shape[0]},{shape[1]}] {name}" for name, shape in SHAPES.items())
    given += f", bool[{ROWS},1] k" if "k" in feeds else ""
    text = f'<ir_version: 10, opset_import: ["": 18]> g ({given}) => ({", ".join(f"float[] {name}" for name in names)}) {{ {" ".join(body.nodes)} }}'
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in body.weights.items())
    return dict(zip(names, ort_run(model, feeds, optimised=False), strict=True))


def point_of(reading: Interpretation, feeds: dict[str, np.ndarray]) -> dict[Hashable, np.ndarray]:
    """Return the numbers of all sources, including products."""
    h, c = reading.loop.states
    where: dict[Hashable, np.ndarray] = {source_of(h): feeds["h"], source_of(c): feeds["c"]}
    where |= dict.fromkeys(reading.scanned, feeds["x"])
    for key, polynomial in reading.derived.items():
        where[key] = at(polynomial, where)
    return {key: array.astype(np.float64) for key, array in where.items()}


def feeds_of(seed: int) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(seed)
    return {name: (numbers.integers(-8, 9, shape) / 8).astype(np.float32) for name, shape in SHAPES.items()}


def compare(body: Body, reading: Interpretation, feeds: dict[str, np.ndarray], told: str) -> Counter[str]:
    """Compare all interpreted values with the numbers of a run; return how many times each operator was interpreted."""
    numbers, where, read = numbers_of(body, feeds), point_of(reading, feeds), Counter[str]()
    for node in reading.loop.body:
        for value in node.outputs:
            abstract, wanted = reading.abstract(value), numbers.get(value.name or "")
            if abstract is None or wanted is None:
                continue
            is_transposed, why = isinstance(abstract, Transposed), f"{told}, {value.name}: {body.nodes}"
            read[f"transposed {node.op_type}" if is_transposed else node.op_type] += 1
            if isinstance(abstract, np.ndarray):
                np.testing.assert_allclose(np.broadcast_to(abstract, wanted.shape), wanted, atol=1e-6, err_msg=why)
                continue
            features = abstract.features if isinstance(abstract, Transposed) else abstract
            wanted = wanted.T if is_transposed else wanted
            lead = wanted.shape[: features.lead]
            assert wanted.shape[features.lead :] == features.shape, why
            assert all(
                dim in (size, None) or (dim == "B" and size == ROWS) for dim, size in zip(features.dims, lead, strict=True)
            ), why
            found = np.broadcast_to(features_at(features, where), (int(np.prod(lead)), *features.shape))
            np.testing.assert_allclose(found, wanted.reshape(-1, *features.shape), rtol=1e-4, atol=1e-4, err_msg=why)
    return read


@pytest.mark.parametrize(("rows", "inferred"), [(str(ROWS), True), ("B", True), ("B", False)])
def test_the_interpretation_equals_what_the_body_computes(rows: str, inferred: bool) -> None:
    read: Counter[str] = Counter()
    for seed in range(200):
        body = random_body(seed)
        if body.nodes:
            loop, ctx = scan_of(body, rows, inferred=inferred)
            read += compare(body, Interpretation.of_body(loop, ctx.opset), feeds_of(seed), f"seed {seed}")
    assert {op for op, count in read.items() if count > 2} >= OFTEN, read
    assert {"transposed Transpose", "transposed MatMul", "transposed Gemm", "transposed Split"} <= read.keys(), read


@pytest.mark.long
@pytest.mark.parametrize(("rows", "inferred"), [(str(ROWS), True), ("B", True), ("B", False)])
def test_the_interpretation_under_a_condition_equals_the_body_where_it_holds(rows: str, inferred: bool) -> None:
    read: Counter[str] = Counter()
    for seed in range(120):
        body, outcome = random_body(seed, masked=True), bool(seed % 2)
        if body.nodes:
            loop, ctx = scan_of(body, rows, masked=True, inferred=inferred)
            reading = Interpretation.of_body(loop, ctx.opset, {loop.scan_inputs[1].inner: outcome})
            read += compare(body, reading, {**feeds_of(seed), "k": np.full((ROWS, 1), outcome)}, f"seed {seed}")
    assert {"Where", "Mul", "Sub", "Cast"} <= {op for op, count in read.items() if count > 5}, read


@pytest.mark.parametrize(
    ("product", "understood"),
    [
        ("v1 = Gemm (h, w, v0)", False),
        ("v1 = Gemm <transB = 1> (h, w, v0)", False),
        ("v1 = Gemm <beta = 0.0> (h, w, v0)", True),
        ("v1 = Gemm (h, w)", True),
        ("t = Transpose (h) u = Transpose (v0) v2 = Gemm (w, t, u) v1 = Transpose (v2)", False),
        ("u = Transpose (v0) v2 = Gemm <transB = 1> (w, h, u) v1 = Transpose (v2)", False),
        ("v2 = Gemm <transB = 1> (w, h) v1 = Transpose (v2)", True),
        ("v2 = MatMul (h, w) v1 = Add (v2, v0)", False),
        ("v2 = MatMul (h, w) v1 = Sum (v2, v0)", False),
    ],
)
def test_unknown_terms_added_to_a_product_are_not_dropped(product: str, understood: bool) -> None:
    body = Body(random.Random(0), nodes=["v0 = Sin (c)", product], weights={"w": np.eye(4, dtype=np.float32)})
    loop, ctx = scan_of(body, "B")
    reading = Interpretation.of_body(loop, ctx.opset)
    (result,) = [value for node in loop.body for value in node.outputs if value.name == "v1"]
    assert (reading.abstract(result) is not None) == understood
