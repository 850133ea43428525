"""Elements read and written by indices of a step, and the places of the largest: numbers as onnxruntime's, in numpy."""

from typing import Any

import numpy as np
import pytest

from rewrites.native.operations import Op
from rewrites.native.plan import Storage
from tests.rewrites.harness import scan
from tests.rewrites.native.harness import refusal, same_numbers

BUFFER: dict[str, Any] = {
    "given": "float[4,3] s, int64[5] xs, float[5,3] rows",
    "inputs": "float[4,3] h, int64 x, float[3] r",
    "attributes": "num_scan_inputs = 2",
    "operands": "s, xs, rows",
}
FEEDS = {
    "s": np.arange(12, dtype=np.float32).reshape(4, 3),
    "xs": np.array([2, -1, 0, 3, -4]),
    "rows": np.float32(np.sin(np.arange(15))).reshape(5, 3),
}
ONE = "int64[1] zero = {0}, int64[2] pair = {1, 1}, int64[2] row = {1, 3}"


def buffer(inside: str, y: str = "3", h1: str = "float[4,3] h1", **more: str) -> str:
    results = {"outputs": f"{h1}, float[{y}] y", "results": f"float[4,3] z, float[5,{y}] ys"}
    return scan(inside, **{**BUFFER, **results, "weights": ONE, **more})


@pytest.mark.parametrize(
    "write",
    [
        "i = Reshape (x, pair) u = Reshape (r, row) h1 = ScatterND (h, i, u)",
        "i = Reshape (x, pair) e = Expand (i, row) u = Reshape (r, row) h1 = ScatterElements <axis = 0> (h, e, u)",
        *(
            f'i = Reshape (x, pair) e = Expand (i, row) u = Reshape (r, row) h1 = ScatterElements <axis = 0, reduction = "{way}"> (h, e, u)'
            for way in ("add", "mul", "max", "min")
        ),
    ],
)
def test_a_row_of_a_state_is_written_in_place(write: str) -> None:
    plan = same_numbers(buffer(f"{write} y = ReduceSum <keepdims = 0> (h1, zero)"), FEEDS, close=1e-6)
    assert [state.storage for state in plan.states] == [Storage.IN_PLACE]
    assert next(each.op for each in plan.instructions if each.op in (Op.COPY, Op.SCATTER)) == Op.SCATTER


def test_a_state_that_is_read_as_it_was_keeps_two_rows_or_is_read_first() -> None:
    same_numbers(
        buffer("i = Reshape (x, pair) u = Reshape (r, row) h1 = ScatterND (h, i, u) y = ReduceMax <keepdims = 0> (h, zero)"), FEEDS
    )
    after = "i = Reshape (x, pair) u = Reshape (r, row) h1 = ScatterND (h, i, u) a = ReduceSum <keepdims = 0> (h1, zero)"
    same_numbers(
        buffer(
            f"{after} b = MatMul (a, m) c = Mul (h, b) d = Add (h1, c) y = ReduceMax <keepdims = 0> (d, zero)",
            weights=f"{ONE}, float[3,1] m = {{1, 2, 3}}",
        ),
        FEEDS,
    )


def test_a_row_or_a_column_or_single_elements_are_read_by_an_index() -> None:
    keep = "h1 = Identity (h)"
    same_numbers(buffer(f"y = Gather (h, x) {keep}", h1="float[4,3] h1"), FEEDS)
    turned = "t = Transpose (h) a = Gather <axis = 1> (t, x) m = Add (a, r)"
    same_numbers(buffer(f"{turned} y = Tanh (m) h1 = Mul (h, m)"), FEEDS)
    two = "i = Reshape (x, pair) e = Concat <axis = 1> (i, i) g = Mod (e, most)"
    same_numbers(
        buffer(f"{two} a = GatherND (h, g) h1 = Add (h, a) y = Mul (r, a)", weights=f"{ONE}, int64[1] most = {{3}}"), FEEDS
    )
    elements = "i = Expand (x, three) a = GatherElements (h, i) y = ReduceSum <keepdims = 0> (a, zero) h1 = Sub (h, y)"
    same_numbers(buffer(elements, weights=f"{ONE}, int64[2] three = {{2, 3}}"), FEEDS)
    narrow = "n = Cast <to = 6> (x) y = Gather (h, n) h1 = Add (h, y)"
    same_numbers(buffer(narrow), FEEDS)


def test_elements_of_several_axes_are_written() -> None:
    inside = "i = Reshape (x, pair) e = Concat <axis = 1> (i, i) g = Mod (e, most) u = ReduceSum (r, zero) h1 = ScatterND (h, g, u) y = Mul (r, u)"
    same_numbers(buffer(inside, weights=f"{ONE}, int64[1] most = {{3}}"), FEEDS)


def test_a_cache_of_a_free_batch_is_written_along_its_second_axis() -> None:
    text = scan(
        "a = Unsqueeze (x, one) e = Shape (a) i = Expand (k, e) h1 = ScatterElements <axis = 1> (h, i, a) y = ReduceSum <keepdims = 0> (h1, one)",
        given="float[B,4,3] s, float[T,B,3] xs, int64[T] ks",
        inputs="float[B,4,3] h, float[B,3] x, int64 k",
        attributes="num_scan_inputs = 2",
        operands="s, xs, ks",
        outputs="float[B,4,3] h1, float[B,3] y",
        results="float[B,4,3] z, float[T,B,3] ys",
        weights="int64[1] one = {1}",
    )
    rng = np.random.default_rng(1)
    for batch in (1, 3):
        feeds = {"s": rng.normal(size=(batch, 4, 3)).astype(np.float32), "xs": rng.normal(size=(3, batch, 3)).astype(np.float32)}
        same_numbers(text, feeds | {"ks": np.array([0, -2, 3])})


ODD = np.float32(
    [[1, np.nan, 3, np.nan], [np.nan, 1, np.nan, 0], [2, 2, 1, 2], [0, -0.0, 0, -0.0], [-np.inf, np.inf, np.nan, np.inf]]
)


def searched(inside: str, y: str) -> str:
    given = {"given": "float s, float[5,4] xs", "inputs": "float h, float[4] x", "outputs": f"float h1, {y} y"}
    name, _, dims = y.partition("[")
    stacked = f"{name}[5,{dims}" if dims else f"{name}[5]"
    return scan(f"{inside} h1 = Identity (h)", **given, results=f"float z, {stacked} ys", weights="int64[1] k = {3}")


@pytest.mark.parametrize("way", ["largest = 1", "largest = 0", "largest = 1, axis = 0"])
def test_the_first_in_order_are_those_of_onnxruntime(way: str) -> None:
    feeds = {"s": np.array(0, np.float32), "xs": ODD}
    same_numbers(searched(f"y, i = TopK <{way}> (x, k)", "float[3]"), feeds)
    same_numbers(searched(f"v, y = TopK <{way}> (x, k)", "int64[3]"), feeds)
    whole = searched(f"w = Cast <to = 7> (x) v, y = TopK <{way}> (w, k)", "int64[3]")
    same_numbers(whole, {"s": feeds["s"], "xs": np.float32(np.arange(20).reshape(5, 4) % 3)})


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_the_place_of_the_largest_is_that_of_onnxruntime(op: str, last: int) -> None:
    feeds = {"s": np.array(0, np.float32), "xs": ODD}
    same_numbers(searched(f"y = {op} <select_last_index = {last}> (x)", "int64[1]"), feeds)
    same_numbers(searched(f"y = {op} <select_last_index = {last}, keepdims = 0> (x)", "int64"), feeds)
    same_numbers(
        searched(f"w = Cast <to = 6> (x) y = {op} <select_last_index = {last}> (w)", "int64[1]"), feeds | {"xs": np.nan_to_num(ODD)}
    )


@pytest.mark.parametrize(
    ("inside", "code"),
    [
        (
            "b = Cast <to = 9> (h) v = Cast <to = 9> (r) i = Reshape (x, pair) u = Reshape (v, row) "
            'w = ScatterND <reduction = "add"> (b, i, u) h1 = Cast <to = 1> (w) y = Identity (r)',
            "NATIVE-TYPE",
        ),
        ("y, n = TopK <sorted = 0> (r, zero2) h1 = Add (h, y)", "NATIVE-FORM"),
        (
            "c = Less (x, x) y = If (c) <then_branch = p () => (float[3] u) { u = Gather (h, x) }, "
            "else_branch = q () => (float[3] v) { v = Neg (r) }> h1 = Add (h, y)",
            "NATIVE-FORM",
        ),
    ],
)
def test_what_cannot_be_promised_refuses_the_loop(inside: str, code: str) -> None:
    assert refusal(buffer(inside, weights=f"{ONE}, int64[1] zero2 = {{3}}")) == code
