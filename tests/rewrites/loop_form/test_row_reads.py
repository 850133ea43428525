"""Rows that a Loop is found to read against the rows it reads when run, each row marked with its number."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from rewrites.analysis.induction.affine_expression import STEP, Affine, Dim
from rewrites.analysis.induction.emission import emit
from rewrites.analysis.induction.induction_variables import integers_of, trip_count
from rewrites.loop_form.row_reads import RowRead, as_vector, row_reads
from rewrites.loops import LoopView, view
from tests.rewrites.apply import one_loop, prepared, read
from tests.support.runtime import ort_run

PLACES = {
    "i": "p = Identity (i)",
    "i + 1": "p = Add (i, k1)",
    "i - 1": "p = Sub (i, k1)",
    "i + 1 - 1": "q = Add (i, k1) p = Sub (q, k1)",
    "n - 1 - i": "q = Sub (n, i) p = Sub (q, k1)",
    "n - i": "p = Sub (n, i)",
    "2 - i": "p = Sub (k2, i)",
    "2 * i": "p = Mul (i, k2)",
    "i mod 2": "p = Mod (i, k2)",
    "a counter from 1": "p = Identity (c)",
    "a counter from 1 as one element": "p = Unsqueeze (c, v0)",
    "a falling counter from 3": "p = Identity (d)",
    "a count in floats": "f = Cast <to = 1> (i) p = Cast <to = 7> (f)",
    "2": "p = Identity (k2)",
}
SOURCES = {"x": 0, "y": 1, "z": 0}
FOUND = {
    "i": True,
    "i + 1 - 1": True,
    ("n - 1 - i", "n"): True,
    ("n - 1 - i", "k3"): False,
    ("n - 1 - i", "m"): False,
    "i - 1": False,
    "2 * i": False,
    "i mod 2": False,
    ("a count in floats", "k3"): True,
    "a count in floats": False,
    "2": False,
}
"""Whether reads are found, whatever the trip count or for one."""


def text_of(place: str, limit: str) -> str:
    reads = " ".join(f"{source}o = Gather <axis = {axis}> ({source}, p)" for source, axis in SOURCES.items())
    return f"""g (float[T,2] x, float[2,U] y, float[4,3] z, int64 m) => (float[] xs, float[] ys, float[] zs)
        <int64 k0 = {{0}}, int64 k1 = {{1}}, int64 k2 = {{2}}, int64 k3 = {{3}}, int64[1] v0 = {{0}}> {{
        s = Shape (x) n = Gather (s, k0) n1 = Sub (n, k1)
        ce, de, xs, ys, zs = Loop <body = body (int64 i, bool go, int64 c, int64 d) => (bool go1, int64 c1, int64 d1, float[] xo, float[] yo, float[] zo) {{
            go1 = Identity (go) c1 = Add (c, k1) d1 = Sub (d, k1) {PLACES[place]} {reads} }}> ({limit}, , k1, k3) }}"""


def number_in(expression: Affine, feeds: dict[str, np.ndarray]) -> int:
    total = int(expression.const.item())
    for symbol in expression.terms:
        assert symbol != STEP
        if isinstance(symbol, Dim):
            total += expression.factor(symbol) * feeds[symbol.value.name or ""].shape[symbol.axis]
        else:
            assert isinstance(symbol, ir.Value)
            total += expression.factor(symbol) * int(feeds[symbol.name or ""])
    return total


def places_of(one: RowRead, feeds: dict[str, np.ndarray], count: int) -> list[int]:
    """Where a read is said to read in each step."""
    start, sign = number_in(one.start, feeds), -1 if one.reverse else 1
    return [start + sign * step for step in range(count)]


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        return ort_run(model, feeds, optimised=False)
    except Exception:
        return None


@pytest.mark.parametrize("limit", ["n", "n1", "k3", "m"])
@pytest.mark.parametrize("place", PLACES)
def test_the_rows_found_are_the_rows_read(place: str, limit: str) -> None:
    before = read(text_of(place, limit), check=False)
    ctx = prepared(text_of(place, limit), check=False)
    loop = view(one_loop(ctx), ctx.opset)
    assert isinstance(loop, LoopView)
    steps = trip_count(loop, ctx.opset)
    assert steps is not None
    found = row_reads(loop, integers_of(loop, ctx.opset, steps), steps)
    assert [(one.source.name, one.axis) for one in found] == [(name, axis) for name, axis in SOURCES.items() if found]
    assert bool(found) == FOUND.get((place, limit), FOUND.get(place, bool(found)))
    for one in found:
        b = ctx.builder()
        ctx.model.graph.outputs.append(one.rows(b, steps, as_vector(b, emit(b, steps))))
        b.insert_before(loop.node)
    after = ir.to_proto(ctx.model)
    for size in (1, 2, 4, 5):
        numbers = {"x": np.arange(size * 2).reshape(size, 2), "y": np.arange(8).reshape(2, 4), "z": np.arange(12).reshape(4, 3)}
        feeds = {**{name: array.astype(np.float32) for name, array in numbers.items()}, "m": np.array(size)}
        count, stacks, all_there = number_in(steps, feeds), run(before, feeds), True
        for one in found:
            source, places = feeds[one.source.name or ""], places_of(one, feeds, count)
            there = [0 <= at < source.shape[one.axis] for at in places]
            all_there = all_there and all(there)
            assert min(places, default=0) >= 0
            assert not one.missing(steps) or not all(there) or not count
            if places:
                assert number_in(one.first(steps), feeds) == min(places)
            if stacks is not None and places:
                wanted = np.stack([source.take([at] if one.ones else at, one.axis) for at in places])
                np.testing.assert_array_equal(stacks[list(SOURCES).index(one.source.name or "")], wanted)
        assert all_there or stacks is None
        results = run(after, feeds)
        if stacks is not None and count:
            assert results is not None
            for one, rows in zip(found, results[len(SOURCES) :], strict=True):
                places = sorted(places_of(one, feeds, count))
                np.testing.assert_array_equal(rows, feeds[one.source.name or ""].take(places, one.axis))
